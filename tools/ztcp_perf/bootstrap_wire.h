// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Helpers shared by bootstrap.cc, rendezvous.cc and join.cc, and included only there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/common/printable.h"
#include "tools/ztcp_perf/secret.h"

namespace ztcp::perf {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
// Text of another process, to be shown: unprintable bytes are replaced.
inline std::string text_of(std::span<const std::byte> bytes) {
  return tools::printable({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

inline std::string my_place() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{} pid {}", host.data(), getpid());
}

// Waits briefly, so that callers check interrupts and deadlines.
inline bool wait_for(int fd, short events, int limit_ms = 50) {
  pollfd p{fd, events, 0};
  return poll(&p, 1, limit_ms) > 0;
}

// The plan and the place follow, each terminated by a zero.
struct Hello {
  Proof proof;  // Over all bytes after it.
  Nonce nonce;
  std::int32_t rank;
  std::int32_t size;
};

inline void prepare(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // Detects a machine that vanishes without closing the connection.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  const int idle_s = 5;
  const int probes = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// Sends a frame that fits any socket's buffer. False: the connection is dead.
inline bool send_at_once(int fd, std::span<const std::byte> frame) {
  return ::send(fd, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(frame.size());
}

}  // namespace ztcp::perf
