// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/launcher.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = -1;
  bool running = true;
  int status = 0;
};

std::string random_cookie() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail("getrandom: {}", std::strerror(errno));
  std::string text;
  for (const unsigned char b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

// In the child: never returns.
[[noreturn]] void become_rank(int rank, const LoopbackListener& listener, const std::string& cookie,
                              const std::string& command, pid_t parent, const sigset_t& mask,
                              int argc, char** argv) {
  // No rank outlives the launcher, even if that is killed.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitStopped);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  setenv("ZTCP_PERF_COOKIE", cookie.c_str(), 1);
  setenv("ZTCP_PERF_LAUNCHED", command.c_str(), 1);
  setenv("ZTCP_LOCAL_RANK", std::to_string(rank).c_str(), 1);
  if (rank == 0) {
    setenv("ZTCP_PERF_LISTEN_FD", std::to_string(listener.fd).c_str(), 1);
  } else {
    close(listener.fd);
  }
  std::vector<std::string> arguments(argv, argv + argc);
  arguments.insert(arguments.end(), {"--rank", std::to_string(rank), "--rendezvous",
                                     fmt::format("127.0.0.1:{}", listener.port)});
  std::vector<char*> raw;
  raw.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  execv("/proc/self/exe", raw.data());
  std::fprintf(stderr, "ztcp_perf: rank %d: cannot start: %s\n", rank, std::strerror(errno));
  _exit(kExitFailed);
}

class Family {
 public:
  explicit Family(std::size_t size) : children_(size) {}

  Child& operator[](std::size_t rank) { return children_[rank]; }
  std::size_t running() const {
    std::size_t count = 0;
    for (const Child& child : children_) count += child.running && child.pid > 0;
    return count;
  }
  // Takes the ends of children that have ended.
  void reap() {
    for (Child& child : children_)
      if (child.running && child.pid > 0 && waitpid(child.pid, &child.status, WNOHANG) == child.pid)
        child.running = false;
  }
  void signal_all(int signal) const {
    for (const Child& child : children_)
      if (child.running && child.pid > 0) kill(child.pid, signal);
  }
  bool any_failed() const {
    for (const Child& child : children_)
      if (!child.running && child.status != 0) return true;
    return false;
  }
  // Says what can't have been said by the rank itself. Returns the exit code of the run: a rank's
  // own failure counts before those that only stopped with it.
  int tell() const {
    int code = kExitOk;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      const Child& child = children_[rank];
      if (WIFSIGNALED(child.status)) {
        if (ended_by_us(child))
          std::fprintf(stderr, "ztcp_perf: rank %zu (pid %d) did not end and was killed\n", rank,
                       child.pid);
        else
          std::fprintf(stderr, "ztcp_perf: rank %zu (pid %d) was killed by signal %d (%s)\n", rank,
                       child.pid, WTERMSIG(child.status), strsignal(WTERMSIG(child.status)));
        code = kExitFailed;
      } else if (const int exit_code = WEXITSTATUS(child.status); exit_code != kExitOk) {
        if (code == kExitOk || code == kExitStopped) code = exit_code;
      }
    }
    return code;
  }
  void mark_killed() { killed_by_us_ = true; }

 private:
  bool ended_by_us(const Child& child) const {
    return killed_by_us_ && WTERMSIG(child.status) == SIGKILL;
  }

  std::vector<Child> children_;
  bool killed_by_us_ = false;
};

// The next signal of `set`, or 0 when none came in time.
int wait_signal(const sigset_t& set, std::chrono::milliseconds limit) {
  const timespec timeout{limit.count() / 1000, (limit.count() % 1000) * 1'000'000};
  const int signal = sigtimedwait(&set, nullptr, &timeout);
  return signal > 0 ? signal : 0;
}

bool is_to_stop(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

}  // namespace

int launch_local_ranks(const Options& options, int argc, char** argv) {
  using namespace std::chrono_literals;
  const LoopbackListener listener = listen_on_loopback();
  const std::string cookie = random_cookie();
  sigset_t watched;
  sigset_t former;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &former);

  // As torchrun does: a plugin shares the host's CPUs by it.
  setenv("LOCAL_WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  const pid_t self = getpid();
  Family family(static_cast<std::size_t>(options.ranks));
  bool interrupted = false;
  for (int rank = 0; rank < options.ranks && !interrupted; ++rank) {
    interrupted = is_to_stop(wait_signal(watched, 0ms));
    const pid_t pid = fork();
    if (pid == 0) become_rank(rank, listener, cookie, options.command, self, former, argc, argv);
    if (pid < 0) {
      std::fprintf(stderr,
                   "ztcp_perf: cannot start rank %d: %s; fewer --ranks, or a higher ulimit -u or "
                   "pids.max of the cgroup\n",
                   rank, std::strerror(errno));
      family.signal_all(SIGKILL);
      return kExitFailed;
    }
    family[static_cast<std::size_t>(rank)].pid = pid;
  }
  close(listener.fd);

  while (family.running() > 0 && !interrupted && !family.any_failed()) {
    const int signal = wait_signal(watched, 1000ms);
    interrupted = is_to_stop(signal);
    if (interrupted) std::fprintf(stderr, "ztcp_perf: stopped by %s\n", strsignal(signal));
    family.reap();
  }
  // One has failed, or the user wants to stop. The others hear of it from each other and end in
  // good order; what does not is ended.
  const auto began = Clock::now();
  bool terminated = false;
  while (family.running() > 0) {
    const auto waited = Clock::now() - began;
    if (!terminated && (interrupted || waited > 1s)) {
      family.signal_all(SIGTERM);
      terminated = true;
    }
    if (waited > 5s) {
      family.mark_killed();
      family.signal_all(SIGKILL);
    }
    wait_signal(watched, 100ms);
    family.reap();
  }
  const int code = family.tell();
  return interrupted ? 130 : code;
}

}  // namespace ztcp::perf
