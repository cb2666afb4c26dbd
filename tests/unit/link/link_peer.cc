// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The other process of the tests around it.
//   link_peer echo SOCKET server|client MTU   sends every frame back, until killed
//   link_peer echo-fork SOCKET server|client MTU  the same, with a forked child that outlives it;
//                                             the child's pid is written to SOCKET.child
//   link_peer start-hugepages                 as start, on 64 MiB of hugepages of node 0
//   link_peer start                           starts EAL and compares the process before and after
//   link_peer fail                            asks EAL for memory that no machine has
// Prints nothing on stdout or stderr; 0 is success, any other status names a check below.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/log.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"

namespace {

using namespace ztcp;

enum Exit : int {
  kOk = 0,
  kUsage = 10,
  kNotStarted = 11,
  kAffinityChanged = 12,
  kSignalsChanged = 13,
  kSignalMaskChanged = 14,
  kEnvironmentChanged = 15,
  kDescriptorInherited = 16,
  kSecondStartFailed = 17,
  kStartedAnyway = 18,
  kMemoryNotSaid = 19,
};

struct Process {
  cpu_set_t cpus;
  sigset_t mask;
  std::array<struct sigaction, 65> actions;
  std::vector<std::string> environment;
  std::vector<int> inheritable;  // Descriptors that are not close-on-exec.

  static Process now() {
    Process p;
    std::memset(static_cast<void*>(&p.cpus), 0, sizeof(p.cpus));
    sched_getaffinity(0, sizeof(p.cpus), &p.cpus);
    sigprocmask(SIG_SETMASK, nullptr, &p.mask);
    for (int s = 1; s <= 64; ++s) {
      auto& action = p.actions[static_cast<std::size_t>(s)];
      std::memset(&action, 0, sizeof(action));
      sigaction(s, nullptr, &action);
    }
    for (char** at = environ; *at != nullptr; ++at) p.environment.emplace_back(*at);
    DIR* folder = opendir("/proc/self/fd");
    while (const dirent* item = readdir(folder)) {
      const int fd = std::atoi(item->d_name);
      const int flags = fcntl(fd, F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0) p.inheritable.push_back(fd);
    }
    closedir(folder);
    std::sort(p.inheritable.begin(), p.inheritable.end());
    return p;
  }
};

bool same_signals(const Process& a, const Process& b) {
  for (std::size_t s = 1; s <= 64; ++s)
    if (a.actions[s].sa_handler != b.actions[s].sa_handler) return false;
  return true;
}

bool same_mask(const Process& a, const Process& b) {
  for (int s = 1; s <= 64; ++s)
    if (sigismember(&a.mask, s) != sigismember(&b.mask, s)) return false;
  return true;
}

std::string g_said;  // All lines of ours.

int check_start(const link::EalConfig& config, std::string_view memory) {
  log::bind([](log::Level, const char*, int, const char* text) { (g_said += text) += '\n'; });
  const Process before = Process::now();
  if (!link::start_eal(config)) return kNotStarted;
  if (g_said.find(memory) == std::string::npos) return kMemoryNotSaid;
  const Process after = Process::now();
  if (!CPU_EQUAL(&before.cpus, &after.cpus)) return kAffinityChanged;
  if (!same_signals(before, after)) return kSignalsChanged;
  if (!same_mask(before, after)) return kSignalMaskChanged;
  if (before.environment != after.environment) return kEnvironmentChanged;
  if (before.inheritable != after.inheritable) return kDescriptorInherited;
  if (!link::start_eal(config)) return kSecondStartFailed;
  return kOk;
}

int check_failure() {
  link::EalConfig config;
  config.node_memory_mib = {1U << 30U};  // A pebibyte.
  const Status started = link::start_eal(config);
  return started ? kStartedAnyway : kOk;
}

// A data loader: it has only inherited things.
void leave_child_behind(const std::string& pid_file) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    pause();
    _exit(0);
  }
  std::ofstream(pid_file + ".new") << child;
  std::rename((pid_file + ".new").c_str(), pid_file.c_str());
}

int echo(const std::string& socket, link::MemifRole role, int mtu_bytes, bool with_child) {
  link::MemifConfig config;
  config.socket_path = socket;
  config.role = role;
  config.mac = {{2, 0, 0, 0, 0, 9}};
  config.mtu_bytes = static_cast<std::uint16_t>(mtu_bytes);
  link::EalConfig eal;
  eal.node_memory_mib = {link::kEalBaseMib + link::memif_memory_mib(config)};
  if (!link::start_eal(eal)) return kNotStarted;
  link::register_poller_thread();
  auto opened = link::open_memif(config);
  if (!opened) return kNotStarted;
  link::Link& link = **opened;
  std::array<RxFrame, 32> received;
  while (true) {
    const std::size_t count = link.receive(received);
    for (std::size_t i = 0; i < count; ++i) {
      // The header is copied, the rest is sent from the received frame.
      const auto bytes = received[i].head;
      TxFrame back;
      back.l2_bytes = 14;
      back.header_bytes = static_cast<std::uint16_t>(std::min<std::size_t>(bytes.size(), 66));
      std::memcpy(back.header.data(), bytes.data(), back.header_bytes);
      const auto rest = bytes.subspan(back.header_bytes);
      back.payload_bytes = static_cast<std::uint32_t>(rest.size());
      back.fragments[0] = {rest.data(), back.payload_bytes, kUnmapped};
      back.fragment_count = rest.empty() ? 0 : 1;
      while (link.transmit({&back, 1}) == 0) sched_yield();
    }
    link.release(std::span(received).first(count));
    if (count > 0 && std::exchange(with_child, false)) leave_child_behind(socket + ".child");
    if (count == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1 && arguments[0] == "start") {
    link::EalConfig config;
    config.node_memory_mib = {60, 40};
    return check_start(config, "may take 100 MiB of memory");
  }
  if (arguments.size() == 1 && arguments[0] == "start-hugepages") {
    link::EalConfig config;
    config.memory = link::EalMemory::kHugepages;
    config.node_memory_mib = {64};
    return check_start(config, "took 64 MiB of hugepages: 64 on NUMA node 0\n");
  }
  if (arguments.size() == 1 && arguments[0] == "fail") return check_failure();
  if (arguments.size() == 4 && arguments[0].starts_with("echo"))
    return echo(argv[2],
                arguments[2] == "server" ? link::MemifRole::kServer : link::MemifRole::kClient,
                std::atoi(argv[4]), arguments[0] == "echo-fork");
  return kUsage;
}
