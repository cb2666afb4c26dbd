// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/memory_link.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <vector>

namespace ztcp::link {
namespace {

constexpr std::uint32_t kEthernetBytes = 18;
constexpr std::uint32_t kBurst = 32;  // Free whatever the receiver keeps.

// Hands small numbers from one thread to one other, in order. Holds every number there is, so
// that pushing never fails.
class NumberRing {
 public:
  explicit NumberRing(std::uint32_t capacity) : slots_(std::bit_ceil(capacity)) {}

  void push(std::uint32_t number) {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    slots_[tail & (slots_.size() - 1)] = number;
    tail_.store(tail + 1, std::memory_order_release);
  }
  bool pop(std::uint32_t& number) {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    number = slots_[head & (slots_.size() - 1)];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  bool empty() const { return size() == 0; }
  // How many the consumer may pop.
  std::uint32_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_relaxed);
  }

 private:
  std::vector<std::uint32_t> slots_;
  alignas(64) std::atomic<std::uint32_t> head_{0};
  alignas(64) std::atomic<std::uint32_t> tail_{0};
};

// One way: frame memory, the numbers of filled frames on their way, and of free ones on their way
// back.
struct Direction {
  Direction(std::uint32_t frames, std::uint32_t frame_bytes)
      : memory(std::size_t{frames} * frame_bytes),
        sizes(frames),
        filled(frames),
        free(frames),
        bytes_per_frame(frame_bytes) {
    for (std::uint32_t i = 0; i < frames; ++i) free.push(i);
  }
  std::byte* frame(std::uint32_t number) {
    return memory.data() + std::size_t{number} * bytes_per_frame;
  }

  std::vector<std::byte> memory;
  std::vector<std::uint32_t> sizes;
  NumberRing filled;
  NumberRing free;
  std::uint32_t bytes_per_frame;
  std::atomic<std::uint64_t> received_bytes{0};  // The receiver's alone to write.
};

class MemoryLink final : public Link {
 public:
  MemoryLink(const MemoryLinkOptions& options, std::size_t end, std::shared_ptr<Direction> out,
             std::shared_ptr<Direction> in)
      : out_(std::move(out)), in_(std::move(in)), state_(options.states[end]) {
    capabilities_.mtu_bytes = options.mtu_bytes;
    capabilities_.mac = options.macs[end];
    capabilities_.tx_checksum = options.checksum_offload;
    capabilities_.rx_checksum = options.checksum_offload;
    capabilities_.max_super_segment_bytes = options.max_super_segment_bytes;
    capabilities_.max_kept_frames = options.frames - std::min(options.frames / 2, kBurst);
    capabilities_.max_kept_bytes = capabilities_.max_kept_frames * in_->bytes_per_frame;
  }

  const LinkCapabilities& capabilities() const override { return capabilities_; }

  std::size_t receive(std::span<RxFrame> frames) override {
    if (!is_up()) return 0;
    std::size_t count = 0;
    std::uint32_t number = 0;
    while (count < frames.size() && in_->filled.pop(number)) {
      RxFrame& frame = frames[count++];
      frame = {};
      frame.head = {in_->frame(number), in_->sizes[number]};
      // Never null, so that a released frame can be told from one that is held.
      frame.handle = in_->frame(number);
      frame.charge_bytes = in_->bytes_per_frame;
      frame.checksum_good = capabilities_.rx_checksum;
      counters_.rx_frames += 1;
      counters_.rx_bytes += frame.head.size();
    }
    if (count > 0) in_->received_bytes.store(counters_.rx_bytes, std::memory_order_relaxed);
    return count;
  }

  void release(std::span<RxFrame> frames) override {
    for (RxFrame& frame : frames) {
      if (frame.kept || frame.handle == nullptr) continue;
      const auto* memory = static_cast<const std::byte*>(std::exchange(frame.handle, nullptr));
      const auto offset = static_cast<std::size_t>(memory - in_->memory.data());
      assert(offset < in_->memory.size() && offset % in_->bytes_per_frame == 0);
      in_->free.push(static_cast<std::uint32_t>(offset / in_->bytes_per_frame));
    }
  }

  std::size_t transmit(std::span<const TxFrame> frames) override {
    std::size_t taken = 0;
    const bool up = is_up();
    for (const TxFrame& frame : frames) {
      if (!up || !fits(frame)) {
        counters_.tx_dropped += 1;
        ++taken;
        continue;
      }
      std::uint32_t number = 0;
      if (!out_->free.pop(number)) {
        counters_.tx_ring_full += 1;
        break;
      }
      out_->sizes[number] = copy(frame, out_->frame(number));
      counters_.tx_frames += 1;
      counters_.tx_bytes += out_->sizes[number];
      counters_.tx_copied_bytes += frame.payload_bytes;
      out_->filled.push(number);
      ++taken;
    }
    return taken;
  }

  TransmitRoom transmit_room(TimePoint) override {
    if (!is_up()) return {};
    return {
        .frames = out_->free.size(),
        .tells_bytes = true,
        .taken_bytes = counters_.tx_bytes,
        .queued_bytes = counters_.tx_bytes - out_->received_bytes.load(std::memory_order_relaxed)};
  }

  LinkState state() override {
    return state_ == nullptr ? LinkState::kUp : state_->load(std::memory_order_relaxed);
  }

  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return "memory"; }

 private:
  bool fits(const TxFrame& frame) const {
    if (frame.segment_size_bytes != 0)
      return frame.payload_bytes <= capabilities_.max_super_segment_bytes;
    const std::uint32_t l3_bytes = frame.header_bytes - frame.l2_bytes + frame.payload_bytes;
    return l3_bytes <= capabilities_.mtu_bytes;
  }

  static std::uint32_t copy(const TxFrame& frame, std::byte* to) {
    std::memcpy(to, frame.header.data(), frame.header_bytes);
    std::uint32_t at = frame.header_bytes;
    for (std::size_t i = 0; i < frame.fragment_count; ++i) {
      const Fragment& fragment = frame.fragments[i];
      if (fragment.size_bytes != 0) std::memcpy(to + at, fragment.data, fragment.size_bytes);
      at += fragment.size_bytes;
    }
    return at;
  }

  std::shared_ptr<Direction> out_;
  std::shared_ptr<Direction> in_;
  const std::atomic<LinkState>* state_;
  LinkCapabilities capabilities_;
  LinkCounters counters_;
};

}  // namespace

LinkPair make_memory_links(const MemoryLinkOptions& options) {
  const std::uint32_t payload =
      std::max<std::uint32_t>(options.mtu_bytes, options.max_super_segment_bytes + 120);
  const std::uint32_t frame_bytes = (payload + kEthernetBytes + 63) / 64 * 64;
  const auto there = std::make_shared<Direction>(options.frames, frame_bytes);
  const auto back = std::make_shared<Direction>(options.frames, frame_bytes);
  return {std::make_unique<MemoryLink>(options, 0, there, back),
          std::make_unique<MemoryLink>(options, 1, back, there)};
}

}  // namespace ztcp::link
