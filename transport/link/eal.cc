// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/eal.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_memory.h>

#include "core/log.h"
#include "core/process_mark.h"
#include "transport/link/dpdk_host.h"
#include "transport/link/process_limits.h"

namespace ztcp::link {
namespace {

std::mutex g_mutex;
std::optional<Status> g_outcome;  // Empty until the first start.
EalMemory g_memory = EalMemory::kPlain;

bool wants_dpdk_log() {
  static const bool wanted = std::getenv("ZTCP_DPDK_LOG") != nullptr;
  return wanted;
}

ssize_t on_log_line(void*, const char* text, std::size_t size) {
  std::string_view line(text, size);
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (line.empty()) return static_cast<ssize_t>(size);
  const bool serious = rte_log_cur_msg_loglevel() <= static_cast<int>(RTE_LOG_ERR);
  if (serious || wants_dpdk_log())
    log::write(serious ? log::Level::kWarn : log::Level::kInfo, "dpdk", 0, line);
  return static_cast<ssize_t>(size);
}

// Must run before rte_eal_init(), otherwise EAL's banner reaches stderr.
Status capture_log() {
  cookie_io_functions_t functions{};
  functions.write = on_log_line;
  std::FILE* stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return fail_errno("fopencookie");
  std::setvbuf(stream, nullptr, _IOLBF, 512);
  set_dpdk_output(stream);
  rte_openlog_stream(stream);
  return {};
}

// The first CPU this process may run on: EAL requires one, but gets none for itself.
Result<unsigned> first_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return fail_errno("sched_getaffinity");
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) return cpu;
  return fail(Errc::kSystem, "sched_getaffinity");
}

std::vector<std::string> arguments(const EalConfig& config, unsigned cpu) {
  // Typed values only: on a bad argument EAL prints its whole usage on stdout.
  std::vector<std::string> args = {
      "ztcp",
      "--no-telemetry",
      "--file-prefix=ztcp-" + std::to_string(getpid()),
      "--lcores=0@" + std::to_string(cpu),
      wants_dpdk_log() ? "--log-level=lib.eal:info" : "--log-level=lib.eal:error",
      // The link reports memif's state: a missing peer is no error.
      wants_dpdk_log() ? "--log-level=pmd.net.memif:debug" : "--log-level=pmd.net.memif:critical",
  };
  const auto& nodes = config.node_memory_mib;
  if (config.memory == EalMemory::kPlain) {
    const auto sum = std::accumulate(nodes.begin(), nodes.end(), std::uint32_t{0});
    args.insert(args.end(), {"--no-huge", "--no-shconf", "--no-pci", "--iova-mode=va", "-m",
                             std::to_string(sum)});
    return args;
  }
  const std::string per_node = fmt::format("{}", fmt::join(nodes, ","));
  args.insert(args.end(),
              {
                  "--in-memory",
                  config.iova == IovaMode::kVirtual ? "--iova-mode=va" : "--iova-mode=pa",
                  // No growth: a later allocation would install a SIGBUS handler.
                  "--socket-mem=" + per_node,
                  "--socket-limit=" + per_node,
                  // Allows only a device that cannot exist: NICs are attached on first need.
                  "--allow=ffff:ff:1f.7",
              });
  return args;
}

// Frame memory is useless in a forked child, and while a child holds it, hugepages are not freed
// and the parent pays for copy-on-write.
void keep_memory_from_children() {
  rte_memseg_list_walk(
      [](const rte_memseg_list* list, void*) {
        if (!list->external) madvise(list->base_va, list->len, MADV_DONTFORK);
        return 0;
      },
      nullptr);
}

std::string mending_advice(const EalConfig& config) {
  if (std::string limits = advice_on_limits(); !limits.empty()) return limits;
  if (config.memory == EalMemory::kPlain)
    return "check free memory and the memory limit of the container (cgroup memory.max)";
  if (config.iova == IovaMode::kPhysical)
    return "check free hugepages and CAP_SYS_ADMIN (without an IOMMU physical addresses are "
           "needed), then run: ztcp_setup --check";
  return "check free hugepages per NUMA node, the hugetlb limit of the container and "
         "ulimit -l, then run: ztcp_setup --check";
}

Status init_on_this_thread(const EalConfig& config, unsigned cpu) {
  std::vector<std::string> args = arguments(config, cpu);
  std::vector<char*> argv;
  argv.reserve(args.size() + 1);
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  if (rte_eal_init(static_cast<int>(args.size()), argv.data()) < 0)
    return fail(Errc::kSystem, "rte_eal_init", rte_errno);
  keep_memory_from_children();
  return {};
}

// Waits until `done` or until DPDK has panicked. True: done.
template <class Done>
bool wait_unless_panicked(std::mutex& mutex, std::condition_variable& changed, const Done& done) {
  std::unique_lock lock(mutex);
  while (!done()) {
    if (dpdk_panicked()) return false;
    changed.wait_for(lock, std::chrono::milliseconds(20));
  }
  return true;
}

// Shared by a thread of ours and one that may sleep for ever.
struct Order {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> outcome;

  void finish(Status status) {
    const std::scoped_lock lock(mutex);
    outcome = status;
    changed.notify_all();
  }
};

Status start(const EalConfig& config) {
  mark_process();  // EAL's resources, ports included, belong to this process alone.
  ZTCP_CHECK(capture_log());
  const unsigned cpu = ZTCP_TRY(first_cpu());
  const auto order = std::make_shared<Order>();
  // EAL's own threads inherit the mask, so they never take a signal of the host process.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([=] { order->finish(init_on_this_thread(config, cpu)); }).detach();
  } catch (const std::system_error& e) {
    order->finish(fail(Errc::kSystem, "pthread_create", e.code().value()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!wait_unless_panicked(order->mutex, order->changed,
                            [&] { return order->outcome.has_value(); }))
    return fail(Errc::kSystem, "rte_eal_init", ENOTRECOVERABLE);
  return *order->outcome;
}

// Logs EAL's memory, which never grows: requested in MiB, taken in whole pages.
void report_memory(const EalConfig& config) {
  std::map<int, std::uint64_t> bytes_of_node;
  rte_memseg_walk(
      [](const rte_memseg_list* list, const rte_memseg* page, void* out) {
        auto& bytes = *static_cast<std::map<int, std::uint64_t>*>(out);
        if (!list->external) bytes[page->socket_id] += page->len;
        return 0;
      },
      &bytes_of_node);
  std::uint64_t mib = 0;
  std::vector<std::string> nodes;
  for (const auto& [node, bytes] : bytes_of_node) {
    mib += bytes >> 20U;
    nodes.push_back(fmt::format("{} on NUMA node {}", bytes >> 20U, node));
  }
  if (config.memory == EalMemory::kHugepages)
    log::info("this process took {} MiB of hugepages: {}", mib, fmt::join(nodes, ", "));
  else
    log::info("this process may take {} MiB of memory for its NICs, without hugepages", mib);
}

}  // namespace

Status start_eal(const EalConfig& config) {
  const std::scoped_lock lock(g_mutex);
  if (g_outcome) {
    if (*g_outcome && g_memory != config.memory) {
      log::warn(
          "DPDK already runs with {} memory in this process and can't serve {}: put memif and PCI "
          "NICs into different fabrics",
          g_memory == EalMemory::kPlain ? "plain" : "hugepage",
          g_memory == EalMemory::kPlain ? "a PCI NIC" : "memif");
      return fail(Errc::kBusy, "start_eal");
    }
    return *g_outcome;
  }
  g_memory = config.memory;
  g_outcome = start(config);
  if (*g_outcome) {
    report_memory(config);
  } else {
    const Error& error = g_outcome->error();
    log::warn("DPDK did not start with {} MiB of {} memory: {} failed: {} ({}); {}",
              fmt::join(config.node_memory_mib, "+"),
              config.memory == EalMemory::kPlain ? "plain" : "hugepage", error.where,
              describe(error.code), std::strerror(error.sys_errno), mending_advice(config));
  }
  return *g_outcome;
}

bool run_on_dpdk_thread(const std::function<void()>& task) {
  struct Run : Order {
    std::function<void()> task;
  };
  // Shared with the alarm, which outlives this call if DPDK panics meanwhile.
  auto run = std::make_shared<Run>();
  run->task = task;
  // An alarm's callback runs on the interrupt thread.
  const auto execute = [](void* argument) {
    const std::unique_ptr<std::shared_ptr<Run>> own(static_cast<std::shared_ptr<Run>*>(argument));
    (*own)->task();
    (*own)->finish({});
  };
  auto* argument = new std::shared_ptr<Run>(run);
  if (dpdk_panicked() || rte_eal_alarm_set(1, execute, argument) != 0) {
    delete argument;
    return false;
  }
  return wait_unless_panicked(run->mutex, run->changed, [&] { return run->outcome.has_value(); });
}

bool register_poller_thread() { return rte_thread_register() == 0; }
void unregister_poller_thread() { rte_thread_unregister(); }

}  // namespace ztcp::link
