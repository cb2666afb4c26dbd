// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What bootstrap.cc and rendezvous.cc share: the frames on a bootstrap connection, and small
// helpers. Included by these two alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

namespace ztcp::perf {

// In front of every frame. A stray connection is told from a rank by the magic.
struct Header {
  std::uint32_t magic;
  std::uint32_t type;
  std::uint32_t payload_bytes;
};
inline constexpr std::uint32_t kMagic = 0x7a504631;  // "zPF1"
inline constexpr std::uint32_t kMaxPayload = 64U << 20U;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string my_place() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{} pid {}", host.data(), getpid());
}

// Waits at most a little, so that callers see interrupts and deadlines.
inline bool wait_for(int fd, short events, int limit_ms = 50) {
  pollfd p{fd, events, 0};
  return poll(&p, 1, limit_ms) > 0;
}

}  // namespace ztcp::perf
