// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/memory_link.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <utility>

#include "transport/link/frame_overhead.h"
#include "transport/link/memory_direction.h"

namespace ztcp::link {
namespace {

constexpr std::uint32_t kFreeFrames = 32;  // Always left free, however many the receiver keeps.

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
    capabilities_.max_kept_frames = options.frames - std::min(options.frames / 2, kFreeFrames);
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
      out_->sizes[number] = copy_frame(frame, out_->frame(number));
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
  const std::uint32_t frame_bytes = (payload + kFrameOverheadBytes + 63) / 64 * 64;
  const auto there = std::make_shared<Direction>(options.frames, frame_bytes);
  const auto back = std::make_shared<Direction>(options.frames, frame_bytes);
  return {std::make_unique<MemoryLink>(options, 0, there, back),
          std::make_unique<MemoryLink>(options, 1, back, there)};
}

}  // namespace ztcp::link
