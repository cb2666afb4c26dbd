// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Starts link_peer, which is in the test's folder, and ends it.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/unit/link/within_seconds.h"

namespace ztcp::link::test {

class Peer {
 public:
  // `prepare` runs in the child before exec (drop privileges, redirect output). Exit status 126:
  // the program could not be run.
  explicit Peer(const std::vector<std::string>& arguments,
                const std::function<void()>& prepare = nullptr) {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "link_peer";
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    if (prepare) prepare();
    execv(program.c_str(), argv.data());
    _exit(126);
  }
  ~Peer() { kill(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void signal(int number) const { ::kill(pid_, number); }

  // Its exit status, -1 when it was killed by a signal or still runs after `seconds`.
  int wait_for_exit(int seconds) {
    int status = 0;
    if (!within_seconds(seconds, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }))
      return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

inline void become_nobody() {
  constexpr uid_t kNobody = 65534;
  if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(125);
}

}  // namespace ztcp::link::test
