// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/loopback_link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ztcp::ustack {
namespace {

class LoopbackLink final : public link::Link {
 public:
  LoopbackLink(std::unique_ptr<link::Link> inner, std::size_t max_held_bytes,
               std::shared_ptr<stats::CaptureTap> tap)
      : inner_(std::move(inner)),
        tap_(std::move(tap)),
        mac_(inner_->capabilities().mac),
        frame_bytes_(frame_bytes(inner_->capabilities())),
        slot_count_(kQueued + max_held_bytes / frame_bytes_ + 1) {}

  const link::LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  std::size_t receive(std::span<RxFrame> frames) override {
    const std::size_t count = take(frames);
    tap_->received(frames.first(count));
    return count;
  }
  void release(std::span<RxFrame> frames) override;
  std::size_t transmit(std::span<const TxFrame> frames) override {
    const std::size_t count = send(frames);
    tap_->sent(frames.first(count));
    return count;
  }
  // A frame's destination is not known before it is made, so both the device and the queue must
  // have room for it.
  link::TransmitRoom transmit_room(TimePoint now) override {
    link::TransmitRoom room = inner_->transmit_room(now);
    room.frames = std::min(room.frames, kQueued - (last_ - first_));
    return room;
  }
  LinkState state() override { return inner_->state(); }
  std::uint32_t map_memory(const void* address, std::size_t size_bytes) override {
    return inner_->map_memory(address, size_bytes);
  }
  void unmap_memory(std::uint32_t key) override { inner_->unmap_memory(key); }
  void note_abandoned_payload() override { inner_->note_abandoned_payload(); }
  const link::LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  // Enough for a window of jumbo frames; when the queue is full the sender waits, as for a full
  // ring. Frames that the receiver holds (out-of-order data) do not count: the frame that fills the
  // gap must still get a slot.
  static constexpr std::size_t kQueued = 256;
  static constexpr std::size_t kEthernetBytes = 18;  // With a VLAN tag.

  struct Slot {
    std::unique_ptr<std::byte[]> bytes;  // Allocated at the first use.
    std::size_t size = 0;
    bool checksum_good = false;
  };

  bool is_ours(const TxFrame& frame) const {
    return std::memcmp(frame.header.data(), mac_.bytes.data(), mac_.bytes.size()) == 0;
  }
  bool is_slot(const void* handle) const {
    return !slots_.empty() && std::less_equal<const void*>{}(slots_.data(), handle) &&
           std::less<const void*>{}(handle, slots_.data() + slots_.size());
  }
  static std::size_t frame_bytes(const link::LinkCapabilities& caps) {
    return kEthernetBytes + std::max<std::size_t>(caps.mtu_bytes, TxFrame::kHeaderCapacity +
                                                                      caps.max_super_segment_bytes);
  }
  std::size_t take(std::span<RxFrame> frames);
  std::size_t send(std::span<const TxFrame> frames);
  bool turn_around(const TxFrame& frame);
  void make_pool();
  Slot* take_slot();

  std::unique_ptr<link::Link> inner_;
  const std::shared_ptr<stats::CaptureTap> tap_;
  const MacAddress mac_;
  const std::size_t frame_bytes_;
  const std::size_t slot_count_;
  std::vector<Slot> slots_;  // Allocated at the first own frame: most NICs never need them.
  std::vector<Slot*> free_;  // Last in, first out.
  std::array<Slot*, kQueued> queue_{};  // Ring, first_ to last_.
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

void LoopbackLink::make_pool() {
  free_.reserve(slot_count_);
  slots_.resize(slot_count_);
  for (Slot& slot : slots_) free_.push_back(&slot);
}

// Null: all slots are in flight or memory is short. The caller treats both as a full ring.
LoopbackLink::Slot* LoopbackLink::take_slot() {
  try {
    if (slots_.empty()) make_pool();
    if (free_.empty() || last_ - first_ == kQueued) return nullptr;
    Slot& slot = *free_.back();
    if (slot.bytes == nullptr)
      slot.bytes = std::make_unique_for_overwrite<std::byte[]>(frame_bytes_);
    free_.pop_back();
    return &slot;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool LoopbackLink::turn_around(const TxFrame& frame) {
  std::size_t size = frame.header_bytes;
  if (size + frame.payload_bytes > frame_bytes_) return true;  // Dropped: can never be sent.
  Slot* const taken = take_slot();
  if (taken == nullptr) return false;
  Slot& slot = *taken;
  std::memcpy(slot.bytes.get(), frame.header.data(), size);
  for (std::size_t i = 0; i < frame.fragment_count; ++i) {
    const Fragment& fragment = frame.fragments[i];
    std::memcpy(slot.bytes.get() + size, fragment.data, fragment.size_bytes);
    size += fragment.size_bytes;
  }
  slot.size = size;
  // With checksum offload the checksum is incomplete, but the bytes never left memory.
  slot.checksum_good = frame.checksum_offload;
  queue_[last_++ % kQueued] = &slot;
  return true;
}

std::size_t LoopbackLink::send(std::span<const TxFrame> frames) {
  std::size_t sent = 0;
  while (sent < frames.size()) {
    const auto rest = frames.subspan(sent);
    const auto first_ours =
        std::find_if(rest.begin(), rest.end(), [&](const TxFrame& f) { return is_ours(f); });
    const auto others = rest.first(static_cast<std::size_t>(first_ours - rest.begin()));
    if (!others.empty()) {
      const std::size_t taken = inner_->transmit(others);
      sent += taken;
      if (taken < others.size()) return sent;
    }
    if (first_ours == rest.end()) return sent;
    if (!turn_around(*first_ours)) return sent;
    ++sent;
  }
  return sent;
}

// Own frames and the device's get half of a burst each, and the room that the others leave: traffic
// between two ranks on one NIC must not starve other hosts' frames, nor the reverse.
std::size_t LoopbackLink::take(std::span<RxFrame> frames) {
  if (first_ == last_) return inner_->receive(frames);
  const std::size_t reserved = std::min(last_ - first_, frames.size() / 2);
  std::size_t count = inner_->receive(frames.first(frames.size() - reserved));
  while (first_ != last_ && count < frames.size()) {
    Slot& slot = *queue_[first_++ % kQueued];
    frames[count++] = RxFrame{.head = std::span(slot.bytes.get(), slot.size),
                              .more = {},
                              .handle = &slot,
                              .charge_bytes = static_cast<std::uint32_t>(frame_bytes_),
                              .checksum_good = slot.checksum_good,
                              .kept = false};
  }
  return count;
}

void LoopbackLink::release(std::span<RxFrame> frames) {
  if (free_.size() == slots_.size()) {  // No own frame is in use, or there is no pool.
    inner_->release(frames);
    return;
  }
  std::size_t i = 0;
  while (i < frames.size()) {
    if (is_slot(frames[i].handle)) {
      if (!frames[i].kept) free_.push_back(static_cast<Slot*>(frames[i].handle));
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < frames.size() && !is_slot(frames[i].handle)) ++i;
    inner_->release(frames.subspan(begin, i - begin));
  }
}

}  // namespace

std::unique_ptr<link::Link> with_loopback(std::unique_ptr<link::Link> link,
                                          std::size_t max_held_bytes,
                                          std::shared_ptr<stats::CaptureTap> tap) {
  return std::make_unique<LoopbackLink>(std::move(link), max_held_bytes, std::move(tap));
}

}  // namespace ztcp::ustack
