// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/loopback_link.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace ztcp::ustack {
namespace {

class LoopbackLink final : public link::Link {
 public:
  explicit LoopbackLink(std::unique_ptr<link::Link> inner)
      : inner_(std::move(inner)), mac_(inner_->capabilities().mac) {}

  const link::LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  std::size_t receive(std::span<RxFrame> frames) override;
  void release(std::span<RxFrame> frames) override;
  std::size_t transmit(std::span<const TxFrame> frames) override;
  link::LinkState state() override { return inner_->state(); }
  void wait(int wake_fd, Duration timeout) override {
    inner_->wait(wake_fd, first_ == last_ ? timeout : Duration::zero());
  }
  std::uint32_t map_memory(const void* address, std::size_t size_bytes) override {
    return inner_->map_memory(address, size_bytes);
  }
  void unmap_memory(std::uint32_t key) override { inner_->unmap_memory(key); }
  const link::LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  // Enough for a window of jumbo frames; when they are all on their way the sender waits, as it
  // would for a full ring.
  static constexpr std::size_t kSlots = 256;
  static constexpr std::size_t kEthernetBytes = 18;  // With a VLAN tag.

  struct Slot {
    std::vector<std::byte> bytes;
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
  bool turn_around(const TxFrame& frame);
  void make_pool();

  std::unique_ptr<link::Link> inner_;
  const MacAddress mac_;
  std::vector<Slot> slots_;  // Made when the first frame comes by: most NICs never need them.
  std::vector<Slot*> free_;
  std::vector<Slot*> queue_;  // Ring of kSlots, first_ to last_.
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

void LoopbackLink::make_pool() {
  const link::LinkCapabilities& caps = inner_->capabilities();
  const std::size_t frame_bytes =
      kEthernetBytes + std::max<std::size_t>(
                           caps.mtu_bytes, TxFrame::kHeaderCapacity + caps.max_super_segment_bytes);
  slots_.resize(kSlots);
  queue_.resize(kSlots);
  free_.reserve(kSlots);
  for (Slot& slot : slots_) {
    slot.bytes.resize(frame_bytes);
    free_.push_back(&slot);
  }
}

bool LoopbackLink::turn_around(const TxFrame& frame) {
  if (slots_.empty()) make_pool();
  if (free_.empty()) return false;
  Slot& slot = *free_.back();
  std::size_t size = frame.header_bytes;
  if (size + frame.payload_bytes > slot.bytes.size()) return true;  // Dropped: can never be sent.
  free_.pop_back();
  std::memcpy(slot.bytes.data(), frame.header.data(), size);
  for (std::size_t i = 0; i < frame.fragment_count; ++i) {
    const Fragment& fragment = frame.fragments[i];
    std::memcpy(slot.bytes.data() + size, fragment.data, fragment.size_bytes);
    size += fragment.size_bytes;
  }
  slot.size = size;
  // What the NIC was to finish never left memory.
  slot.checksum_good = frame.checksum_offload;
  queue_[last_++ % kSlots] = &slot;
  return true;
}

std::size_t LoopbackLink::transmit(std::span<const TxFrame> frames) {
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

std::size_t LoopbackLink::receive(std::span<RxFrame> frames) {
  std::size_t count = 0;
  while (first_ != last_ && count < frames.size()) {
    Slot& slot = *queue_[first_++ % kSlots];
    frames[count++] = RxFrame{.head = std::span(slot.bytes).first(slot.size),
                              .more = {},
                              .handle = &slot,
                              .charge_bytes = static_cast<std::uint32_t>(slot.bytes.size()),
                              .checksum_good = slot.checksum_good,
                              .kept = false};
  }
  return count + inner_->receive(frames.subspan(count));
}

void LoopbackLink::release(std::span<RxFrame> frames) {
  if (free_.size() == slots_.size()) {  // None of ours is out, or there is no pool.
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

std::unique_ptr<link::Link> with_loopback(std::unique_ptr<link::Link> link) {
  return std::make_unique<LoopbackLink>(std::move(link));
}

}  // namespace ztcp::ustack
