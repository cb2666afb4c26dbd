// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bulk over loopback between two processes: each has N sockets with a thread each, and measures
// while both send.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "bench/reference/loopback.h"

namespace ztcp::bench {

// One side's sockets. A thread for each runs `carry(socket, stop)` from construction until end() on
// this or the other side.
class Side {
 public:
  template <class Carry>
  Side(std::vector<int> sockets, const Carry& carry) : sockets_(std::move(sockets)) {
    for (const int socket : sockets_)
      threads_.emplace_back([this, socket, carry] { carry(socket, stop_); });
  }

  // Waits until each socket has gone round its buffer, by the sum `received`: then pages exist and
  // windows are open.
  void warm_up(const std::atomic<std::uint64_t>& received) const {
    using Clock = std::chrono::steady_clock;
    const auto gives_up = Clock::now() + std::chrono::seconds(60);
    while (received < sockets_.size() * kBufferBytes) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (Clock::now() < gives_up) continue;
      std::fprintf(
          stderr, "%zu sockets have brought %llu bytes in a minute: has the other process ended?\n",
          sockets_.size(), static_cast<unsigned long long>(received));
      std::_Exit(1);
    }
  }

  void end() {
    stop_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    join();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    for (const int socket : sockets_) ::close(socket);
  }

 private:
  std::vector<int> sockets_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

// The results of `measure(side)` in this and in the other process; memory that both refer to exists
// before the fork.
template <class Measured, class Carry, class Measure>
std::array<Measured, 2> measure_both(unsigned count, const Carry& carry, const Measure& measure) {
  Gate gate(count);
  std::array<int, 2> told{};
  checked(::pipe(told.data()), "pipe");
  const pid_t other = checked(::fork(), "fork");
  if (other == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Side side(gate.connect(count), carry);
    const Measured theirs = measure(side);
    if (::write(told[1], &theirs, sizeof theirs) != sizeof theirs) give_up("write");
    side.join();
    std::_Exit(0);
  }
  ::close(told[1]);  // Open here, it would hide the end of the other process.
  Side side(gate.accept(count), carry);
  const Measured ours = measure(side);
  Measured theirs{};
  // Only once it has measured, too: it needs our bytes.
  if (::read(told[0], &theirs, sizeof theirs) != sizeof theirs) give_up("read");
  side.end();
  checked(::waitpid(other, nullptr, 0), "waitpid");
  ::close(told[0]);
  return {ours, theirs};
}

}  // namespace ztcp::bench
