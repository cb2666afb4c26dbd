// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The plugin's one Net, on the real config, machine and transports, and its shutdown when the
// process ends.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "config/check/check.h"
#include "config/environment.h"
#include "config/machine/cpu_share.h"
#include "config/machine/live_machine.h"
#include "config/plugin_mark.h"
#include "core/local_addresses.h"
#include "core/log_origin.h"
#include "core/process_mark.h"
#include "plugin/collnet_workers.h"
#include "plugin/gpu_identity.h"
#include "plugin/nccl_log.h"
#include "plugin/net.h"
#include "plugin/receive_hints.h"
#include "plugin/startup.h"
#include "plugin/statistics_page.h"
#include "transport/stats/process_page.h"
#include "transport/ustack/nic_choice.h"

namespace ztcp::plugin {
namespace {

// Unreferenced, but the linker must keep it.
[[gnu::used, gnu::retain]] constexpr auto kMark = std::to_array(config::kPluginMark);

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

config::LoadResult load_here(const std::string& path) {
  config::LiveMachine machine;
  return config::load(machine, path);
}

config::Problem log_problem(const std::string& path, const Error& error) {
  return {"ZTCP_LOG",
          fmt::format("{} can't be written, so only NCCL's log has these lines: {}", path,
                      error.sys_errno != 0 ? std::strerror(error.sys_errno) : error.where),
          "name a new file in a folder that only this user may write to"};
}

// Runs when the process ends, not at dlclose(): the library is linked with -z nodelete. The last
// ACK of a finished collective must not be lost with the process, and the peers of unclosed
// connections must not wait for it. Nothing is torn down, because NCCL's threads may still be
// inside the plugin. NCCL's logger may be gone by now. The calling thread allocates nothing, since
// a signal handler may have called exit().
[[gnu::destructor]] void on_process_end() {
  static std::atomic<bool> has_run{false};
  // The page is there from init on, the process's mark from the first connection on.
  if (owns_process() && !has_run.exchange(true)) {
    bind_nccl_log(nullptr);
    net().drain();
  }
  stats::end_process_page();
}

// exit() runs handlers in the reverse order of their registration, and library destructors after
// all of them. CUDA registered earlier and then frees memory that receives are posted in: by then
// no peer may write there any more.
void run_before_earlier_exit_handlers() {
  [[maybe_unused]] static const int failed = std::atexit(on_process_end);
}

Told<Startup> start_up_here(bool asks_tuner) {
  run_before_earlier_exit_handlers();
  config::Environment environment = config::read_environment();
  if (!asks_tuner && environment.untuned_by.empty()) environment.untuned_by = "NCCL before 2.24";
  const std::string host = log::short_host_name();
  const std::string log_file = log::expand_name(environment.log_file, host, getpid());
  if (const Status opened = log::open_file(log_file, log::origin_of(host, environ)); !opened)
    environment.problems.push_back(log_problem(log_file, opened.error()));
  remember_local_rank(environment.local_rank);
  remember_receive_hints(environment.receives_are_told_apart);
  // Read once, for all devices: NCCL and training frameworks change the CPU mask later.
  config::LiveMachine here;
  const auto cpus = std::make_shared<const config::CpuShare>(config::read_cpu_share(here));
  return start_up(
      {
          .load = load_here,
          .check_host =
              [](const config::Fabric& fabric) {
                config::LiveMachine machine;
                return config::check_host(fabric, machine, visible_gpus(),
                                          ustack::expected_nics(fabric.nics, view_gpus()),
                                          local_addresses());
              },
          .transports = transport_sources(cpus),
          .open_page = open_statistics_page,
          .collnet_workers = collnet_workers(*cpus),
      },
      environment, host_name());
}

}  // namespace

Net& net() {
  static Net* const instance = new Net(start_up_here);
  return *instance;
}

}  // namespace ztcp::plugin
