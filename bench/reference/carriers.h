// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ways in which a thread may have the kernel move bytes over a socket, both directions at once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace ztcp::bench {

enum class Way : std::uint8_t { kPlain, kZeroCopy, kRing, kRingZeroCopy, kBusyPoll };
inline constexpr std::array kWays = {Way::kPlain, Way::kZeroCopy, Way::kRing, Way::kRingZeroCopy,
                                     Way::kBusyPoll};
const char* name(Way way);
// Null: this kernel has it, and grants it to this user. Else what is missing.
const char* why_not(Way way);
constexpr bool has_ring(Way way) { return way == Way::kRing || way == Way::kRingZeroCopy; }

// What a socket needs before it is used so.
void prepare(Way way, int socket);

// Of all sockets of one side.
struct Tally {
  std::atomic<std::uint64_t> received_bytes = 0;
  std::atomic<std::uint64_t> wrong_bytes = 0;
  // Of zero copies the kernel tells when the memory is free again, and if it has copied after all.
  std::atomic<std::uint64_t> completions = 0;
  std::atomic<std::uint64_t> copied = 0;
};

// Until `stop`, or until the other side has shut the socket down. Whoever `checks` compares what
// comes with the pattern that both sides send. Memory is sent again only when it is free.
void carry(Way way, int socket, const std::atomic<bool>& stop, bool checks, Tally& tally);

// The kernel has done with the memory of these zero copies, by the number of their send.
struct Freed {
  std::uint32_t first;
  std::uint32_t last;
  bool was_copied;
};
// False: it has nothing to say for now.
bool read_freed(int socket, Freed& freed);

}  // namespace ztcp::bench
