// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The 32 request slots of a comm, which are the ring that hands posts to the engine: message n lies
// in slot n modulo 32. NCCL's progress thread takes slots in order
// and frees them in any; the holder of the baton reads them in order and completes them in any. One
// atomic word per slot says whose it is.
//
// So a slot is free again only to the message 32 later.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/msg/recv_message.h"
#include "transport/msg/send_message.h"
#include "transport/transport.h"

namespace ztcp::ustack {

class CommState;

// A cache line each: one is polled while its neighbour is completed.
class alignas(64) Slot final : public Request {
 public:
  Result<bool> test(std::span<std::size_t> sizes_bytes) override;

 private:
  friend class SlotTable;
  friend class CommState;
  enum : std::uint32_t { kFree, kPosted, kDone };

  std::atomic<std::uint32_t> state_{kFree};
  std::uint32_t memory_key_ = kUnmapped;
  // Atomic only because deregister_memory() looks at them from another thread; the order comes from
  // state_.
  std::atomic<std::byte*> data_{nullptr};
  std::atomic<std::size_t> size_bytes_{0};
  std::size_t done_bytes_ = 0;
  CommState* comm_ = nullptr;
};

// The session's record of what a slot posted. Beside the slots, for it is large and the engine's.
struct LentMessage {
  std::uint32_t slot = 0;
};
struct LentSend final : LentMessage, msg::SendMessage {};
struct LentRecv final : LentMessage, msg::RecvMessage {};

class SlotTable {
 public:
  static constexpr std::size_t kSlots = 32;

  explicit SlotTable(CommState& comm) {
    for (Slot& slot : slots_) slot.comm_ = &comm;
  }

  // --- NCCL's progress thread --------------------------------------------------------------------
  // Null while the message 32 before this one is under way, or not yet taken: ask again.
  Slot* post(std::byte* data, std::size_t size_bytes, std::uint32_t memory_key) {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    Slot& slot = slots_[head % kSlots];
    if (slot.state_.load(std::memory_order_relaxed) != Slot::kFree) return nullptr;
    slot.data_.store(data, std::memory_order_relaxed);
    slot.size_bytes_.store(size_bytes, std::memory_order_relaxed);
    slot.memory_key_ = memory_key;
    slot.state_.store(Slot::kPosted, std::memory_order_release);
    head_.store(head + 1, std::memory_order_release);
    return &slot;
  }
  // True when done; then the slot is free again.
  bool take_done(Slot& slot, std::size_t* size_bytes) {
    if (slot.state_.load(std::memory_order_acquire) != Slot::kDone) return false;
    if (size_bytes != nullptr) *size_bytes = slot.done_bytes_;
    slot.state_.store(Slot::kFree, std::memory_order_relaxed);
    return true;
  }

  // --- The holder of the baton -------------------------------------------------------------------
  // Calls body(index, data, size, key) for each newly posted slot, in order of posting.
  template <class Body>
  void drain(Body&& body) {
    const std::uint32_t head = head_.load(std::memory_order_acquire);
    for (; tail_ != head; ++tail_) {
      const std::uint32_t index = tail_ % kSlots;
      const Slot& slot = slots_[index];
      body(index, slot.data_.load(std::memory_order_relaxed),
           slot.size_bytes_.load(std::memory_order_relaxed), slot.memory_key_);
    }
  }
  void complete(std::uint32_t index, std::size_t size_bytes) {
    Slot& slot = slots_[index];
    slot.done_bytes_ = size_bytes;
    slot.state_.store(Slot::kDone, std::memory_order_release);
  }

  // --- Any thread --------------------------------------------------------------------------------
  // A posted, uncompleted slot touches [address, address + size_bytes).
  bool any_posted_in(const void* address, std::size_t size_bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    for (const Slot& slot : slots_) {
      if (slot.state_.load(std::memory_order_acquire) != Slot::kPosted) continue;
      const auto data =
          reinterpret_cast<std::uintptr_t>(slot.data_.load(std::memory_order_relaxed));
      const std::size_t bytes = slot.size_bytes_.load(std::memory_order_relaxed);
      if (data - first < size_bytes || first - data < bytes) return true;
    }
    return false;
  }

 private:
  std::array<Slot, kSlots> slots_;
  alignas(64) std::atomic<std::uint32_t> head_{0};
  alignas(64) std::uint32_t tail_ = 0;
};
static_assert((SlotTable::kSlots & (SlotTable::kSlots - 1)) == 0, "head_ and tail_ wrap");

}  // namespace ztcp::ustack
