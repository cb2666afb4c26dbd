// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/reference/ping.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "bench/reference/loopback.h"
#include "bench/reference/ring.h"

namespace ztcp::bench {
namespace {

using Clock = std::chrono::steady_clock;

// One end, used by the thread that makes it.
class End {
 public:
  End(Way way, Waiting waiting, int socket) : way_(way), waiting_(waiting), socket_(socket) {
    prepare(way, socket);
    if (has_ring(way)) ring_ = std::make_unique<Ring>();
  }

  // Sends the word received, or the first, and waits for the next. False: the other end has left.
  bool exchange() { return ring_ != nullptr ? exchange_by_ring(true) : send() && receive(); }
  bool hear() { return ring_ != nullptr ? exchange_by_ring(false) : receive(); }
  std::uint64_t& word() { return word_; }

 private:
  bool send() {
    const int flags = MSG_NOSIGNAL | (way_ == Way::kZeroCopy ? MSG_ZEROCOPY : 0);
    ssize_t sent = ::send(socket_, &word_, sizeof word_, flags);
    while (way_ == Way::kZeroCopy && sent < 0 && errno == ENOBUFS) {
      read_all_freed();
      sent = ::send(socket_, &word_, sizeof word_, flags);
    }
    if (way_ == Way::kZeroCopy) read_all_freed();
    return sent == static_cast<ssize_t>(sizeof word_);
  }
  bool receive() {
    const int flags = waiting_ == Waiting::kAwake ? MSG_DONTWAIT : MSG_WAITALL;
    while (true) {
      const ssize_t got = ::recv(socket_, &word_, sizeof word_, flags);
      if (got >= 0) return got == static_cast<ssize_t>(sizeof word_);
      if (errno != EAGAIN && errno != EINTR) return false;
    }
  }
  void read_all_freed() {
    for (Freed freed{}; read_freed(socket_, freed);) {
    }
  }
  // Sends and receives with one call, which also waits when sleeping is allowed.
  bool exchange_by_ring(bool sends) {
    enum Mark : std::uint64_t { kReceive, kSend };
    unsigned out = 1;
    bool is_well = true;
    if (sends) {
      sent_ = word_;
      ring_->add_send(socket_, reinterpret_cast<const std::byte*>(&sent_), sizeof sent_, kSend,
                      way_ == Way::kRingZeroCopy);
      ++out;
    }
    ring_->add_receive(socket_, reinterpret_cast<std::byte*>(&word_), sizeof word_, kReceive);
    while (out != 0) {
      ring_->enter(waiting_ == Waiting::kAwake ? 0 : out);
      ring_->reap([&](const io_uring_cqe& done) {
        --out;
        if ((done.flags & IORING_CQE_F_NOTIF) != 0) return;
        if ((done.flags & IORING_CQE_F_MORE) != 0) ++out;
        is_well &= done.res == static_cast<int>(sizeof word_);
      });
    }
    return is_well;
  }

  const Way way_;
  const Waiting waiting_;
  const int socket_;
  std::unique_ptr<Ring> ring_;
  std::uint64_t word_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace

double ping_us(Way way, Waiting waiting, double seconds) {
  constexpr int kWarmUp = 200;
  Gate gate(1);
  const int ours = gate.connect(1).front();
  const int theirs = gate.accept(1).front();
  std::thread answering([&] {
    End end(way, waiting, theirs);
    for (bool goes_on = end.hear(); goes_on;) {
      ++end.word();
      goes_on = end.exchange();
    }
    ::shutdown(theirs, SHUT_RDWR);
  });
  {
    End end(way, waiting, ours);
    auto begin = Clock::now();
    const auto took = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    std::uint64_t count = 0;
    // The clock is read only sometimes: on some machines it costs as much as a system call.
    for (std::uint64_t rounds = 0; rounds % 64 != 0 || rounds <= kWarmUp || took() < seconds;
         ++rounds, ++count) {
      if (rounds == kWarmUp) {
        begin = Clock::now();
        count = 0;
      }
      if (!end.exchange() || end.word() != rounds + 1) give_up("ping: a word was not answered");
    }
    const double us = took() * 1e6 / static_cast<double>(count) / 2;
    ::shutdown(ours, SHUT_RDWR);
    answering.join();
    ::close(ours);
    ::close(theirs);
    return us;
  }
}

}  // namespace ztcp::bench
