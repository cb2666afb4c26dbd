// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ways in which a thread can move bytes over a kernel socket, both directions at once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace ztcp::bench {

enum class Way : std::uint8_t { kPlain, kZeroCopy, kRing, kRingZeroCopy, kBusyPoll };
inline constexpr std::array kWays = {Way::kPlain, Way::kZeroCopy, Way::kRing, Way::kRingZeroCopy,
                                     Way::kBusyPoll};
const char* name(Way way);
// Null: this kernel supports it, and allows it to this user. Otherwise the missing part.
const char* why_not(Way way);
constexpr bool has_ring(Way way) { return way == Way::kRing || way == Way::kRingZeroCopy; }

// Sets the socket's options for this way.
void prepare(Way way, int socket);

// The sum over all sockets of one side.
struct Tally {
  std::atomic<std::uint64_t> received_bytes = 0;
  std::atomic<std::uint64_t> wrong_bytes = 0;
  // Zero copies: the kernel's notifications that memory is free, and those of sends it has copied.
  std::atomic<std::uint64_t> completions = 0;
  std::atomic<std::uint64_t> copied = 0;
};

// Runs until `stop`, or until the other side has shut the socket down. With `checks` received bytes
// are compared with the pattern that both sides send. Memory is sent again only when it is free.
void carry(Way way, int socket, const std::atomic<bool>& stop, bool checks, Tally& tally);

// A range of zero-copy sends, by number, with memory that the kernel has released.
struct Freed {
  std::uint32_t first;
  std::uint32_t last;
  bool was_copied;
};
// False: there is no notification now.
bool read_freed(int socket, Freed& freed);

}  // namespace ztcp::bench
