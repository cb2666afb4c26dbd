// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Packets over a nonblocking Unix stream: output is kept until the socket takes it, and callers ask
// for room before they append.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <unistd.h>
#include <vector>

#include "tests/support/verbs/soft_nic/packet.h"

namespace ztcp::soft_nic {

class Stream {
 public:
  explicit Stream(int fd);
  ~Stream() { close(fd_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int fd() const { return fd_; }
  bool has_room() const { return out_.size() - written_ < kRoomBytes; }
  bool has_unwritten() const { return written_ < out_.size(); }
  // Returns the place for the payload; valid until the next call.
  std::span<std::byte> append(const Packet& packet);
  // False: the peer is gone.
  bool write();
  // Calls take(packet, payload) for received packets, up to a limit that gives others a turn.
  // False: the peer is gone.
  template <class Take>
  bool read(Take&& take);

  bool waits_for_room = false;  // epoll watches it for room.

 private:
  static constexpr std::size_t kRoomBytes = 1U << 20U;
  static constexpr int kTurns = 4;

  bool fill();

  const int fd_;
  std::vector<std::byte> out_;
  std::size_t written_ = 0;
  std::vector<std::byte> in_;
  std::size_t filled_ = 0;
};

template <class Take>
bool Stream::read(Take&& take) {
  for (int turn = 0; turn < kTurns; ++turn) {
    if (!fill()) return errno == EAGAIN || errno == EINTR;
    std::size_t at = 0;
    while (filled_ - at >= sizeof(Packet)) {
      Packet packet;
      std::memcpy(&packet, in_.data() + at, sizeof packet);
      if (filled_ - at < sizeof packet + packet.payload_bytes) break;
      take(packet,
           std::span<const std::byte>(in_).subspan(at + sizeof packet, packet.payload_bytes));
      at += sizeof packet + packet.payload_bytes;
    }
    std::memmove(in_.data(), in_.data() + at, filled_ - at);
    filled_ -= at;
  }
  return true;
}

}  // namespace ztcp::soft_nic
