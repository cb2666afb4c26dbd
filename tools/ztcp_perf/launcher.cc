// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/launcher.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/secret.h"

namespace ztcp::perf {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = -1;
  bool running = true;
  int status = 0;
};

// A pipe with the run's secret, for one rank. Other processes can read arguments and the
// environment.
int secret_pipe(const std::string& secret) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe: {}", std::strerror(errno));
  const bool written =
      write(ends[1], secret.data(), secret.size()) == static_cast<ssize_t>(secret.size());
  close(ends[1]);
  if (!written) fail("pipe: {}", std::strerror(errno));
  return ends[0];
}

// In the child: never returns.
[[noreturn]] void become_rank(int rank, const LoopbackListener& listener, int secret_fd,
                              const std::string& command, pid_t parent, const sigset_t& mask,
                              int argc, char** argv) {
  // Ranks end with the launcher, even if it is killed.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitStopped);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  fcntl(secret_fd, F_SETFD, 0);  // Keep it open across exec.
  setenv("ZTCP_PERF_SECRET_FD", std::to_string(secret_fd).c_str(), 1);
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
  std::fprintf(stderr, "ztcp_perf: rank %d: cannot start: /proc/self/exe: %s%s\n", rank,
               std::strerror(errno), errno == ENOENT ? "; is /proc mounted?" : "");
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
  // Reaps children that have ended.
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
  // Reports deaths that a rank cannot report itself. Returns the exit code of the run: a rank's own
  // failure precedes those that only stopped with it.
  int tell() const {
    int code = kExitOk;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      const Child& child = children_[rank];
      if (WIFSIGNALED(child.status) && was_terminated_by_us(child)) {
        if (code == kExitOk) code = kExitStopped;
      } else if (WIFSIGNALED(child.status)) {
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
  void mark_terminated() { terminated_by_us_ = true; }
  void mark_killed() { killed_by_us_ = true; }

 private:
  // Before it could install a handler.
  bool was_terminated_by_us(const Child& child) const {
    return terminated_by_us_ && WTERMSIG(child.status) == SIGTERM;
  }
  bool ended_by_us(const Child& child) const {
    return killed_by_us_ && WTERMSIG(child.status) == SIGKILL;
  }

  std::vector<Child> children_;
  bool terminated_by_us_ = false;
  bool killed_by_us_ = false;
};

// The next signal of `set`; 0: timeout.
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
  const std::string secret = random_secret();
  sigset_t watched;
  sigset_t former;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &former);

  // Like torchrun: plugins divide the host's CPUs by it.
  setenv("LOCAL_WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  const pid_t self = getpid();
  Family family(static_cast<std::size_t>(options.ranks));
  bool interrupted = false;
  const auto note = [&interrupted](int signal) {
    interrupted = is_to_stop(signal);
    if (interrupted) std::fprintf(stderr, "ztcp_perf: stopped by %s\n", strsignal(signal));
  };
  for (int rank = 0; rank < options.ranks && !interrupted; ++rank) {
    note(wait_signal(watched, 0ms));
    const int secret_fd = secret_pipe(secret);
    const pid_t pid = fork();
    if (pid == 0) become_rank(rank, listener, secret_fd, options.command, self, former, argc, argv);
    close(secret_fd);
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
    note(wait_signal(watched, 1000ms));
    family.reap();
  }
  // A rank failed, or the user wants to stop. The other ranks hear of it from each other and end
  // cleanly; those that do not are terminated.
  const auto began = Clock::now();
  bool terminated = false;
  while (family.running() > 0) {
    const auto waited = Clock::now() - began;
    if (!terminated && (interrupted || waited > 1s)) {
      family.mark_terminated();
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
