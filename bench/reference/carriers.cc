// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/reference/carriers.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <linux/errqueue.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "bench/reference/loopback.h"
#include "bench/reference/ring.h"

namespace ztcp::bench {
namespace {

constexpr int kBusyPollMicroseconds = 50;
// Limit of sends with memory that is not free yet.
constexpr std::size_t kMostLent = 200;

// Sends, by number, with memory that the kernel may still read. They are given back in any order;
// the buffer is free up to the oldest outstanding one.
class Lent {
 public:
  bool has_room_for(std::size_t bytes) const {
    return sends_.size() < kMostLent && bytes_ + bytes <= kBufferBytes;
  }
  void lend(std::size_t bytes) {
    sends_.push_back({bytes, false});
    bytes_ += bytes;
  }
  // A number wraps as the kernel's does.
  void give_back(std::uint32_t number) {
    const std::uint32_t place = number - first_;
    if (place >= sends_.size()) return;
    sends_[place].is_free = true;
    while (!sends_.empty() && sends_.front().is_free) {
      bytes_ -= sends_.front().bytes;
      sends_.pop_front();
      ++first_;
    }
  }
  bool is_empty() const { return sends_.empty(); }

 private:
  struct Send {
    std::size_t bytes;
    bool is_free;
  };
  std::deque<Send> sends_;
  std::uint32_t first_ = 0;
  std::size_t bytes_ = 0;
};

// One socket with its send and receive buffers. Their pages exist before the measurement.
class Lane {
 public:
  Lane(int socket, bool checks, Tally& tally)
      : socket_(socket), checks_(checks), tally_(tally), out_(kBufferBytes), in_(kBufferBytes) {
    std::uint64_t word = 0x9e3779b97f4a7c15ULL;
    for (std::size_t i = 0; i < out_.size(); i += sizeof word) {
      std::memcpy(&out_[i], &word, sizeof word);
      word = word * 6364136223846793005ULL + 1442695040888963407ULL;
    }
  }

  int socket() const { return socket_; }
  std::byte* next_out() { return sending_.at(out_); }
  std::size_t out_bytes() const { return sending_.piece(); }
  std::byte* next_in() { return receiving_.at(in_); }
  std::size_t in_bytes() const { return receiving_.piece(); }
  void on_sent(std::size_t bytes) { sending_.move(bytes); }
  void on_received(std::size_t bytes) {
    if (checks_) check(bytes);
    receiving_.move(bytes);
    tally_.received_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void on_freed(std::uint64_t sends, bool was_copied) {
    tally_.completions.fetch_add(sends, std::memory_order_relaxed);
    if (was_copied) tally_.copied.fetch_add(sends, std::memory_order_relaxed);
  }

 private:
  // Compares with the same place of the pattern, and clears the buffer for the next round.
  void check(std::size_t bytes) {
    std::byte* const came = receiving_.at(in_);
    const std::byte* const sent = receiving_.at(out_);
    if (std::memcmp(came, sent, bytes) != 0)
      for (std::size_t i = 0; i < bytes; ++i)
        tally_.wrong_bytes.fetch_add(came[i] != sent[i] ? 1 : 0, std::memory_order_relaxed);
    std::memset(came, 0, bytes);
  }

  const int socket_;
  const bool checks_;
  Tally& tally_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  Cursor sending_;
  Cursor receiving_;
};

void wait_for(int socket, short events) {
  pollfd ready{socket, events, 0};
  ::poll(&ready, 1, 10);
}

void carry_by_calls(Lane& lane, bool zero_copy, const std::atomic<bool>& stop) {
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (zero_copy ? MSG_ZEROCOPY : 0);
  Lent lent;
  const auto read_all_freed = [&] {
    for (Freed freed{}; read_freed(lane.socket(), freed);) {
      const std::uint32_t count = freed.last - freed.first + 1;
      lane.on_freed(count, freed.was_copied);
      for (std::uint32_t i = 0; i < count; ++i) lent.give_back(freed.first + i);
    }
  };
  while (!stop.load(std::memory_order_relaxed)) {
    ssize_t sent = -1;
    bool is_full = true;
    if (!zero_copy || lent.has_room_for(lane.out_bytes())) {
      sent = ::send(lane.socket(), lane.next_out(), lane.out_bytes(), flags);
      // ENOBUFS: net.core.optmem_max has no room for more notifications.
      if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) break;
      is_full = sent < 0;
    }
    if (sent > 0) {
      lane.on_sent(static_cast<std::size_t>(sent));
      if (zero_copy) lent.lend(static_cast<std::size_t>(sent));
    }
    const ssize_t got = ::recv(lane.socket(), lane.next_in(), lane.in_bytes(), MSG_DONTWAIT);
    if (got > 0) lane.on_received(static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
    if (zero_copy && !lent.is_empty()) read_all_freed();
    if (is_full && got < 0) wait_for(lane.socket(), POLLIN | POLLOUT);
  }
  // The kernel may read our memory until it notifies us or the connection is over.
  ::shutdown(lane.socket(), SHUT_RDWR);
  for (int waits_left = 100; !lent.is_empty() && waits_left > 0; --waits_left) {
    wait_for(lane.socket(), 0);
    read_all_freed();
  }
}

// A send and a receive are in flight at all times, and one call waits for either.
void carry_by_ring(Lane& lane, bool zero_copy, const std::atomic<bool>& stop) {
  enum Mark : std::uint64_t { kReceive = 1ULL << 32, kSend = 1ULL << 33 };
  Ring ring;
  Lent lent;
  std::uint32_t sends = 0;
  bool is_sending = false;
  bool is_receiving = false;
  bool is_over = false;
  std::size_t notes = 0;  // Outstanding notifications of free memory.
  while (true) {
    is_over |= stop.load(std::memory_order_relaxed);
    if (is_over) {
      if (!is_sending && !is_receiving && notes == 0) return;
      ::shutdown(lane.socket(), SHUT_RDWR);
    } else {
      if (!is_sending && (!zero_copy || lent.has_room_for(lane.out_bytes()))) {
        ring.add_send(lane.socket(), lane.next_out(), lane.out_bytes(), kSend | sends, zero_copy);
        is_sending = true;
      }
      if (!is_receiving) {
        ring.add_receive(lane.socket(), lane.next_in(), lane.in_bytes(), kReceive);
        is_receiving = true;
      }
    }
    ring.enter(1);
    ring.reap([&](const io_uring_cqe& done) {
      if (done.user_data == kReceive) {
        is_receiving = false;
        is_over |= done.res <= 0;
        if (done.res > 0) lane.on_received(static_cast<std::size_t>(done.res));
      } else if ((done.flags & IORING_CQE_F_NOTIF) != 0) {
        --notes;
        lane.on_freed(1,
                      (static_cast<std::uint32_t>(done.res) & IORING_NOTIF_USAGE_ZC_COPIED) != 0);
        lent.give_back(static_cast<std::uint32_t>(done.user_data));
      } else {
        is_sending = false;
        is_over |= done.res <= 0;
        const std::size_t sent = done.res > 0 ? static_cast<std::size_t>(done.res) : 0;
        lane.on_sent(sent);
        if (zero_copy) {
          lent.lend(sent);
          if ((done.flags & IORING_CQE_F_MORE) != 0)
            ++notes;
          else
            lent.give_back(sends);
          ++sends;
        }
      }
    });
  }
}

}  // namespace

const char* name(Way way) {
  switch (way) {
    case Way::kPlain:
      return "plain";
    case Way::kZeroCopy:
      return "msg_zerocopy";
    case Way::kRing:
      return "io_uring";
    case Way::kRingZeroCopy:
      return "io_uring_zc";
    case Way::kBusyPoll:
      return "busy_poll";
  }
  return "";
}

const char* why_not(Way way) {
  if (way == Way::kRing) return Ring::why_not();
  if (way == Way::kRingZeroCopy) return Ring::why_no_zero_copy();
  if (way == Way::kPlain) return nullptr;
  const int socket = new_socket();
  const int value = way == Way::kZeroCopy ? 1 : kBusyPollMicroseconds;
  const int option = way == Way::kZeroCopy ? SO_ZEROCOPY : SO_BUSY_POLL;
  const bool is_granted = ::setsockopt(socket, SOL_SOCKET, option, &value, sizeof value) == 0;
  const int error = errno;
  ::close(socket);
  return is_granted ? nullptr : std::strerror(error);
}

void prepare(Way way, int socket) {
  const int value = way == Way::kZeroCopy ? 1 : kBusyPollMicroseconds;
  if (way == Way::kZeroCopy)
    checked(::setsockopt(socket, SOL_SOCKET, SO_ZEROCOPY, &value, sizeof value), "SO_ZEROCOPY");
  if (way == Way::kBusyPoll)
    checked(::setsockopt(socket, SOL_SOCKET, SO_BUSY_POLL, &value, sizeof value), "SO_BUSY_POLL");
}

void carry(Way way, int socket, const std::atomic<bool>& stop, bool checks, Tally& tally) {
  Lane lane(socket, checks, tally);
  if (has_ring(way))
    carry_by_ring(lane, way == Way::kRingZeroCopy, stop);
  else
    carry_by_calls(lane, way == Way::kZeroCopy, stop);
}

bool read_freed(int socket, Freed& freed) {
  alignas(cmsghdr) std::array<std::byte, 128> control{};
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr) return false;
  sock_extended_err error{};
  std::memcpy(&error, CMSG_DATA(head), sizeof error);
  if (error.ee_origin != SO_EE_ORIGIN_ZEROCOPY) return false;
  freed = {error.ee_info, error.ee_data, (error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0};
  return true;
}

}  // namespace ztcp::bench
