// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One way of a link in shared memory: slots that hold a frame each, notes that tell the receiver
// which of them are filled, and numbers of read slots on their way back. A slot is the sender's
// until its note is published and the receiver's until its number comes back, in any order. The
// sender fills the slot that came back last: it is the most likely to be still in the cache, and a
// ring that is never full touches only a few slots.
//
// Each half belongs to one thread. Neither trusts the other's numbers: on an impossible number
// take() or collect() fails, and the caller ends the link.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/frame.h"

namespace ztcp::link {

inline constexpr std::uint32_t kMaxShmSlots = 1024;

// In shared memory, initially zeros.
struct ShmWay {
  alignas(64) std::atomic<std::uint32_t> sent;      // Notes ever published; written by the sender.
  alignas(64) std::atomic<std::uint32_t> returned;  // Numbers ever returned; written by the
                                                    // receiver.
  alignas(64) std::array<std::atomic<std::uint64_t>, kMaxShmSlots> notes;
  alignas(64) std::array<std::atomic<std::uint32_t>, kMaxShmSlots> numbers;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct ShmNote {
  std::uint16_t slot = 0;
  std::uint16_t header_bytes = 0;
  std::uint32_t payload_bytes = 0;

  std::uint64_t packed() const {
    return std::uint64_t{slot} | std::uint64_t{header_bytes} << 16 |
           std::uint64_t{payload_bytes} << 32;
  }
  static ShmNote unpack(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16),
            static_cast<std::uint32_t>(word >> 32)};
  }
};

// A way, as both halves see it: a power of two of slots, at most kMaxShmSlots.
struct ShmPlace {
  ShmWay* way = nullptr;
  std::byte* slots = nullptr;
  std::uint32_t slot_count = 0;
  std::uint32_t slot_bytes = 0;

  std::byte* slot(std::uint32_t number) const { return slots + std::size_t{number} * slot_bytes; }
  std::uint32_t mask() const { return slot_count - 1; }
};

class ShmSender {
 public:
  explicit ShmSender(const ShmPlace& place) : place_(place), is_out_(place.slot_count) {
    free_.reserve(place.slot_count);
    for (std::uint32_t i = place.slot_count; i > 0; --i)
      free_.push_back(static_cast<std::uint16_t>(i - 1));
  }

  // Takes back the slots that the receiver has read. False: it returned one that it did not have.
  bool collect() {
    const std::uint32_t returned = place_.way->returned.load(std::memory_order_acquire);
    if (returned - collected_ > place_.slot_count - free_.size()) return false;
    while (collected_ != returned) {
      const std::uint32_t number =
          place_.way->numbers[collected_++ & place_.mask()].load(std::memory_order_relaxed);
      if (number >= place_.slot_count || is_out_[number] == 0) return false;
      is_out_[number] = 0;
      free_.push_back(static_cast<std::uint16_t>(number));
    }
    return true;
  }
  std::size_t room() const { return free_.size(); }

  // Place of the next frame, header and payload in a row; only if there is room.
  std::byte* next_slot() const { return place_.slot(free_.back()); }
  void push(std::uint32_t header_bytes, std::uint32_t payload_bytes) {
    const std::uint16_t slot = free_.back();
    free_.pop_back();
    is_out_[slot] = 1;
    const ShmNote note{slot, static_cast<std::uint16_t>(header_bytes), payload_bytes};
    place_.way->notes[pushed_++ & place_.mask()].store(note.packed(), std::memory_order_relaxed);
  }
  // Shows the receiver all pushed frames.
  void publish() { place_.way->sent.store(pushed_, std::memory_order_release); }

 private:
  ShmPlace place_;
  std::vector<std::uint16_t> free_;  // The last one is used next.
  std::vector<std::uint8_t> is_out_;
  std::uint32_t pushed_ = 0;
  std::uint32_t collected_ = 0;
};

class ShmReceiver {
 public:
  explicit ShmReceiver(const ShmPlace& place) : place_(place), is_here_(place.slot_count) {}

  enum class Outcome : std::uint8_t { kNothing, kFrame, kBroken };
  // The next frame. kBroken: the note is invalid.
  Outcome take(ShmNote& note) {
    if (taken_ == seen_) {
      seen_ = place_.way->sent.load(std::memory_order_acquire);
      if (taken_ == seen_) return Outcome::kNothing;
      if (seen_ - taken_ > place_.slot_count - here_) return Outcome::kBroken;
    }
    // Read once: the checked note is the note used.
    note =
        ShmNote::unpack(place_.way->notes[taken_ & place_.mask()].load(std::memory_order_relaxed));
    if (note.slot >= place_.slot_count || is_here_[note.slot] != 0) return Outcome::kBroken;
    if (note.header_bytes > TxFrame::kHeaderCapacity ||
        std::uint64_t{note.header_bytes} + note.payload_bytes > place_.slot_bytes)
      return Outcome::kBroken;
    ++taken_;
    ++here_;
    is_here_[note.slot] = 1;
    return Outcome::kFrame;
  }
  // The slot of the next frame, if its note has been seen: for a prefetch.
  const std::byte* following() const {
    if (taken_ == seen_) return nullptr;
    const ShmNote note =
        ShmNote::unpack(place_.way->notes[taken_ & place_.mask()].load(std::memory_order_relaxed));
    return place_.slot(note.slot & place_.mask());
  }
  const std::byte* slot(const ShmNote& note) const { return place_.slot(note.slot); }

  // A taken slot has been read.
  void give_back(std::uint32_t slot) {
    is_here_[slot] = 0;
    --here_;
    place_.way->numbers[given_++ & place_.mask()].store(slot, std::memory_order_relaxed);
  }
  // Shows the sender all returned slots.
  void publish() { place_.way->returned.store(given_, std::memory_order_release); }

  std::uint32_t held() const { return here_; }

 private:
  ShmPlace place_;
  std::vector<std::uint8_t> is_here_;
  std::uint32_t seen_ = 0;
  std::uint32_t taken_ = 0;
  std::uint32_t given_ = 0;
  std::uint32_t here_ = 0;
};

}  // namespace ztcp::link
