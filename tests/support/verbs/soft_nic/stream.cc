// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/soft_nic/stream.h"

#include <sys/socket.h>

namespace ztcp::soft_nic {

Stream::Stream(int fd) : fd_(fd), in_(2 * (sizeof(Packet) + kMtuBytes)) {}

std::span<std::byte> Stream::append(const Packet& packet) {
  if (written_ == out_.size()) {
    out_.clear();
    written_ = 0;
  }
  // Keeps the memory bounded for a stream that is never empty, too.
  if (written_ >= kRoomBytes) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(written_));
    written_ = 0;
  }
  const std::size_t at = out_.size();
  out_.resize(at + sizeof packet + packet.payload_bytes);
  std::memcpy(out_.data() + at, &packet, sizeof packet);
  return std::span(out_).subspan(at + sizeof packet);
}

bool Stream::write() {
  while (has_unwritten()) {
    const ssize_t took = send(fd_, out_.data() + written_, out_.size() - written_, MSG_NOSIGNAL);
    if (took < 0) return errno == EAGAIN || errno == EINTR;
    written_ += static_cast<std::size_t>(took);
  }
  return true;
}

// False: nothing came, with errno set; 0: the peer has closed.
bool Stream::fill() {
  const ssize_t got = recv(fd_, in_.data() + filled_, in_.size() - filled_, 0);
  if (got == 0) errno = 0;
  if (got <= 0) return false;
  filled_ += static_cast<std::size_t>(got);
  return true;
}

}  // namespace ztcp::soft_nic
