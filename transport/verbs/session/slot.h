// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the two ends of a connection write into each other's memory. The receiver's post is a row of
// up to 8 slots in the sender's ring, one for each buffer; the sender answers each with the bytes
// and an immediate, which says the slot and the size. Of the machine's byte order: both ends are
// x86, and the exchange (exchange.h) refuses another version.
//
// A slot is 32 bytes and aligned to them: no write of it is torn, also where PCIe may reorder. Its
// sequence number stands last and is looked at first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/transport.h"

namespace ztcp::verbs {

struct alignas(32) Slot {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t size_bytes = 0;
  std::int32_t tag = 0;
  std::uint32_t buffers = 0;  // Of the post; the same in all its slots.
  std::uint32_t reserved = 0;
  std::uint32_t sequence = 0;  // The post's: 1 and on.
};
static_assert(sizeof(Slot) == 32 && offsetof(Slot, sequence) == 28);

// Posts that a receiver may have outstanding, which NCCL never exceeds.
inline constexpr std::uint32_t kPosts = 32;
inline constexpr std::uint32_t kSlots = kPosts * static_cast<std::uint32_t>(kMaxReceives);
using Ring = std::array<Slot, kSlots>;

// Where the row of a post begins.
constexpr std::uint32_t row_of(std::uint32_t sequence) {
  return (sequence - 1) % kPosts * static_cast<std::uint32_t>(kMaxReceives);
}

// Sizes that find no room in an immediate, by slot: written in front of it over the same queue
// pair.
using SizeTable = std::array<std::uint32_t, kSlots>;

// slot: 8 bits, size: 24.
inline constexpr std::uint32_t kSizeInTable = 0xff'ffff;
static_assert(kSlots == 256);

constexpr std::uint32_t to_immediate(std::uint32_t slot, std::uint64_t size_bytes) {
  return slot << 24U |
         (size_bytes < kSizeInTable ? static_cast<std::uint32_t>(size_bytes) : kSizeInTable);
}
constexpr std::uint32_t slot_of(std::uint32_t immediate) { return immediate >> 24U; }
constexpr std::uint32_t size_of(std::uint32_t immediate) { return immediate & kSizeInTable; }

// The peer's NIC writes these words.
inline std::uint32_t load_sequence(const Slot& slot) {
  return __atomic_load_n(&slot.sequence, __ATOMIC_ACQUIRE);
}

// Where in the peer's memory something of that kind lies.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

}  // namespace ztcp::verbs
