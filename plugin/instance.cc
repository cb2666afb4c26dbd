// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The plugin's one Net, standing on the real config, machine and transport, and what happens to
// it when the process ends.
#include <array>
#include <unistd.h>

#include "config/check.h"
#include "config/environment.h"
#include "config/plugin_mark.h"
#include "plugin/gpu_identity.h"
#include "plugin/nccl_log.h"
#include "plugin/net.h"
#include "plugin/startup.h"
#include "transport/core/process_mark.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {
namespace {

// Nothing refers to it; the linker shall keep it all the same.
[[gnu::used, gnu::retain]] constexpr auto kMark = std::to_array(config::kPluginMark);

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

Told<Startup> start_up_here() {
  const config::Environment environment = config::read_environment();
  if (!environment.log_file.empty()) log::open_file(environment.log_file);
  remember_local_rank(environment.local_rank);
  return start_up(
      {
          .load = config::load,
          .check_host =
              [](const config::Fabric& fabric) {
                return config::check_host(fabric, config::Roots{}, visible_gpus());
              },
          .create_transport =
              [](const config::Fabric& fabric) { return ustack::create(fabric, probe_gpu); },
      },
      environment, host_name());
}

// Runs when the process ends, not at dlclose(): the library is linked with -z nodelete. The last
// ACK of a finished collective must not be lost with the process; nothing else is torn down,
// because NCCL's threads may still be inside. NCCL's logger is gone by now.
[[gnu::destructor]] void on_process_end() {
  if (!owns_process()) return;
  bind_nccl_log(nullptr);
  net().drain();
}

}  // namespace

Net& net() {
  static Net* const instance = new Net(start_up_here);
  return *instance;
}

}  // namespace ztcp::plugin
