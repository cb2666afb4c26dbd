// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the receiver of a connection writes into the sender's memory, and what comes back with the
// bytes. The receiver's post is a row of up to 8 slots in the sender's ring, one for each buffer;
// the sender answers each with the bytes, in up to 8 pieces, and an immediate with each of them. Of
// the machine's byte order: both ends are x86, and the exchange (exchange.h) refuses another
// version.
//
// A slot is a line of the cache: no write of it is torn. Its sequence number stands last and is
// looked at first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/transport.h"
#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

struct alignas(64) Slot {
  std::uint64_t address = 0;
  RailKeys rkeys{};
  std::uint32_t size_bytes = 0;
  std::int32_t tag = 0;
  std::uint32_t buffers = 0;  // Of the post; the same in all its slots.
  std::uint32_t flags = 0;
  std::uint32_t reserved = 0;
  std::uint32_t sequence = 0;  // The post's: 1 and on.

  static constexpr std::uint32_t kHost = 1;    // CPUs reach it, and so does TCP.
  static constexpr std::uint32_t kPolled = 2;  // Somebody looks at it while bytes come.
};
static_assert(sizeof(Slot) == 64 && offsetof(Slot, sequence) == 60);

// Posts that a receiver may have outstanding, which NCCL never exceeds.
inline constexpr std::uint32_t kPosts = 32;
// Slots of a post: one for each buffer that it may have.
inline constexpr std::uint32_t kGroup = static_cast<std::uint32_t>(kMaxReceives);
inline constexpr std::uint32_t kSlots = kPosts * kGroup;
using Ring = std::array<Slot, kSlots>;

// Where the row of a post begins.
constexpr std::uint32_t row_of(std::uint32_t sequence) { return (sequence - 1) % kPosts * kGroup; }

// Which piece of the message for which slot it is. How many bytes it has, the receiver's device
// tells with its completion; where they lie, nobody needs to know.
struct Immediate {
  std::uint32_t slot = 0;
  std::uint32_t sequence = 0;  // The slot's; its last 16 bits.
  std::uint32_t piece = 0;
  std::uint32_t pieces = 1;  // Of the message.
};
static_assert(kSlots == 256 && kMaxQueuePairs == 8);

// slot: 8 bits, piece: 3, pieces less one: 3, two that are zero, sequence: 16.
constexpr std::uint32_t encode(const Immediate& of) {
  return of.slot << 24U | of.piece << 21U | (of.pieces - 1) << 18U | (of.sequence & 0xffffU);
}
constexpr Immediate decode(std::uint32_t word) {
  return {word >> 24U, word & 0xffffU, word >> 21U & 7U, (word >> 18U & 7U) + 1};
}

// The peer's NIC writes these words.
inline std::uint32_t load_sequence(const Slot& slot) {
  return __atomic_load_n(&slot.sequence, __ATOMIC_ACQUIRE);
}

// Where in the peer's memory something of that kind lies.
struct RemoteMemory {
  std::uint64_t address = 0;
  RailKeys rkeys{};
};

}  // namespace ztcp::verbs
