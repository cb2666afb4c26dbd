// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "core/cpu_pause.h"
#include "core/log.h"
#include "tools/common/atomic_file.h"
#include "tools/common/standard_streams.h"
#include "tools/ztcp_switch/fabric_switch.h"
#include "tools/ztcp_switch/idle.h"
#include "tools/ztcp_switch/options.h"
#include "tools/ztcp_switch/report.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"
#include "transport/link/tap_link.h"

namespace ztcp::fabric {
namespace {

constexpr int kExitFailed = 1;

std::atomic<bool> g_stop{false};
std::atomic<bool> g_report{false};

void install(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

TimePoint read_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

void to_stderr(log::Level level, const char*, int, const char* text) {
  std::fprintf(stderr, "ztcp_switch: %s%s\n", level == log::Level::kWarn ? "" : "info: ", text);
}

// Never the destination of a frame.
MacAddress mac_of_port(std::size_t index) {
  return {{0x02, 0x73, 0x77, 0, 0, static_cast<std::uint8_t>(index)}};
}

link::MemifConfig memif_config(const PortOptions& port, std::size_t index) {
  link::MemifConfig memif;
  memif.socket_path = port.target;
  memif.role = link::MemifRole::kServer;
  memif.id = port.memif_id;
  memif.mac = mac_of_port(index);
  memif.mtu_bytes = port.mtu_bytes;
  return memif;
}

// Null after the link's own warning.
std::unique_ptr<link::Link> open_port(const PortOptions& port, std::size_t index) {
  if (port.kind == PortOptions::Kind::kTap) {
    link::TapConfig tap;
    tap.interface = port.target;
    tap.mac = mac_of_port(index);
    tap.mtu_bytes = port.mtu_bytes;
    tap.offloads = false;  // Frames from the kernel are forwarded unchanged.
    auto opened = link::open_tap(tap);
    return opened ? std::move(*opened) : nullptr;
  }
  auto opened = link::open_memif(memif_config(port, index));
  return opened ? std::move(*opened) : nullptr;
}

bool start_dpdk(const SwitchOptions& options) {
  std::uint32_t memory_mib = 0;
  for (std::size_t i = 0; i < options.ports.size(); ++i)
    if (options.ports[i].kind == PortOptions::Kind::kMemif)
      memory_mib += link::memif_memory_mib(memif_config(options.ports[i], i));
  if (memory_mib == 0) return true;
  link::EalConfig eal;
  eal.memory = link::EalMemory::kPlain;
  eal.node_memory_mib = {memory_mib + link::kEalBaseMib};
  if (!link::start_eal(eal)) return false;
  link::register_poller_thread();
  return true;
}

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Without a free descriptor here, a memif client would wait without any message.
void raise_descriptor_limit(std::size_t ports) {
  const rlim_t wanted = 32 + 16 * ports;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted)
    std::fprintf(stderr,
                 "ztcp_switch: %zu ports may need %zu open files, this process is limited to %zu: "
                 "raise ulimit -n, or its clients may find no carrier\n",
                 ports, static_cast<std::size_t>(wanted), static_cast<std::size_t>(limit.rlim_cur));
}

void say_ready(const SwitchOptions& options) {
  if (!options.ready_fd) {
    std::printf("ready: %zu ports\n", options.ports.size());
    std::fflush(stdout);
    return;
  }
  constexpr char kReady[] = "ready\n";
  // On failure the reader sees the end of the file.
  (void)!write(*options.ready_fd, kReady, sizeof kReady - 1);
  close(*options.ready_fd);
}

class Reporter {
 public:
  Reporter(const SwitchOptions& options, const FabricSwitch& fabric, TimePoint began)
      : options_(options), fabric_(fabric), began_(began), next_(next_after(began)) {}

  void tick(TimePoint now) {
    if (g_report.exchange(false, std::memory_order_relaxed)) {
      print(now);
      write_json(now);
    }
    if (now < next_) return;
    next_ = next_after(now);
    print(now);
  }
  // False if the JSON could not be written.
  bool finish(TimePoint now) {
    if (!options_.quiet) print(now);
    return write_json(now);
  }

 private:
  TimePoint next_after(TimePoint now) const {
    return options_.stats_interval > Duration::zero() ? now + options_.stats_interval : kNever;
  }
  void print(TimePoint now) const {
    std::fputs(table_of(fabric_, now, now - began_).c_str(), stdout);
    std::fflush(stdout);
  }
  bool write_json(TimePoint now) const {
    if (options_.json.empty()) return true;
    const Status written = tools::write_report(
        options_.json, json_of(fabric_, options_.fabric.seed, now, now - began_));
    if (!written) {
      const Error& error = written.error();
      std::fprintf(stderr, "ztcp_switch: --json %s: %s\n", options_.json.c_str(),
                   error.code == Errc::kRefused ? error.where : std::strerror(error.sys_errno));
    }
    return written.has_value();
  }

  const SwitchOptions& options_;
  const FabricSwitch& fabric_;
  TimePoint began_;
  TimePoint next_;
};

void rest(const Idle::Step& step) {
  switch (step.action) {
    case Idle::Action::kSpin:
      cpu_pause();
      return;
    case Idle::Action::kYield:
      sched_yield();
      return;
    case Idle::Action::kSleep:
      break;
  }
  const timespec time{0, static_cast<long>(step.sleep.count())};
  nanosleep(&time, nullptr);  // Signals cut it short.
}

void forward_until_stopped(FabricSwitch& fabric, const SwitchOptions& options, Reporter& reporter) {
  const bool shared = usable_cpus() <= static_cast<int>(options.ports.size());
  Idle idle({.spin = shared ? Duration::zero() : options.spin, .max_sleep = options.max_sleep});
  const pid_t parent = getppid();
  TimePoint next_check{};
  while (!g_stop.load(std::memory_order_relaxed)) {
    const TimePoint now = read_clock();
    const std::size_t moved = fabric.turn(now, read_clock);
    if (now >= next_check) {
      next_check = now + std::chrono::milliseconds(10);
      reporter.tick(now);
      if (options.exit_with_parent && getppid() != parent) return;
    }
    if (moved > 0) {
      idle.on_work();
    } else {
      // A full transmit ring does not signal free space.
      rest(idle.on_idle(now, fabric.backlogged() ? now : fabric.next_deadline()));
    }
  }
}

int run(const SwitchOptions& options) {
  if (options.exit_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  const auto stop = [](int) { g_stop.store(true, std::memory_order_relaxed); };
  install(SIGINT, stop);
  install(SIGTERM, stop);
  install(SIGHUP, stop);
  install(SIGUSR1, [](int) { g_report.store(true, std::memory_order_relaxed); });
  install(SIGPIPE, SIG_IGN);
  install(SIGXFSZ, SIG_IGN);  // A write beyond ulimit -f then fails instead of ending the process.
  log::bind(to_stderr);

  raise_descriptor_limit(options.ports.size());
  if (!start_dpdk(options)) return kExitFailed;
  std::vector<std::unique_ptr<link::Link>> links;
  FabricSwitch fabric(options.fabric);
  for (std::size_t i = 0; i < options.ports.size(); ++i) {
    links.push_back(open_port(options.ports[i], i));
    if (!links.back()) return kExitFailed;
    fabric.add_port(options.ports[i].settings, *links.back());
  }
  say_ready(options);
  Reporter reporter(options, fabric, read_clock());
  forward_until_stopped(fabric, options, reporter);
  const bool has_reported = reporter.finish(read_clock());
  return tools::has_kept_output("ztcp_switch") && has_reported ? 0 : kExitFailed;
}

}  // namespace
}  // namespace ztcp::fabric

int main(int argc, char** argv) {
  return ztcp::fabric::run(ztcp::fabric::parse_options(argc, argv));
}
