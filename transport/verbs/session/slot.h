// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The slots that the receiver of a connection writes into the sender's memory, and the immediates
// that come back with the bytes. A post of the receiver is a row of up to 8 slots in the sender's
// ring, one for each buffer; the sender answers each with its bytes in up to 8 pieces, each with an
// immediate. Integers are little-endian, as on all CPUs that ztcp is built for, and the exchange
// (exchange.h) refuses another version.
//
// A slot is one cache line, so that its write is not torn. Its sequence number is last, and read
// first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/memory_order.h"
#include "transport/transport.h"
#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

struct alignas(64) Slot {
  std::uint64_t address = 0;
  RailKeys rkeys{};
  std::uint32_t size_bytes = 0;
  std::int32_t tag = 0;
  std::uint32_t buffers = 0;  // Buffers of the post; the same in all its slots.
  std::uint32_t flags = 0;
  std::uint32_t reserved = 0;
  std::uint32_t sequence = 0;  // The post's: 1 and on.

  static constexpr std::uint32_t kHost = 1;    // CPUs can access the buffer, and so can TCP.
  static constexpr std::uint32_t kPolled = 2;  // The buffer is polled while bytes arrive.
};
static_assert(sizeof(Slot) == 64 && offsetof(Slot, sequence) == 60);

// Posts that a receiver may have outstanding, which NCCL never exceeds.
inline constexpr std::uint32_t kPosts = 32;
// Slots of a post: one for each buffer that it may have.
inline constexpr std::uint32_t kGroup = static_cast<std::uint32_t>(kMaxReceives);
inline constexpr std::uint32_t kSlots = kPosts * kGroup;
using Ring = std::array<Slot, kSlots>;

// The first slot of a post's row.
constexpr std::uint32_t row_of(std::uint32_t sequence) { return (sequence - 1) % kPosts * kGroup; }

// Names the slot, and the piece of its message. The receiver's device reports the number of bytes
// with the completion.
struct Immediate {
  std::uint32_t slot = 0;
  std::uint32_t sequence = 0;  // The slot's; its last 16 bits.
  std::uint32_t piece = 0;
  std::uint32_t pieces = 1;  // Pieces of the message.
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
  const std::uint32_t sequence = __atomic_load_n(&slot.sequence, __ATOMIC_ACQUIRE);
  order_device_reads();
  return sequence;
}

// A place in the peer's memory.
struct RemoteMemory {
  std::uint64_t address = 0;
  RailKeys rkeys{};
};

}  // namespace ztcp::verbs
