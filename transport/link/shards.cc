// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shards.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <utility>

namespace ztcp::link {
namespace {

// Frames in transit from one shard to another, in order.
class FrameRing {
 public:
  static constexpr std::uint32_t kCapacity = kMostHandedOver;
  static_assert(std::has_single_bit(kCapacity));

  // Called by the sending shard.
  bool push(const RxFrame& frame) {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == kCapacity) return false;
    frames_[tail % kCapacity] = frame;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  // Called by the receiving shard.
  bool pop(RxFrame& frame) {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    frame = frames_[head % kCapacity];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  alignas(64) std::atomic<std::uint32_t> tail_{0};
  alignas(64) std::atomic<std::uint32_t> head_{0};
  std::array<RxFrame, kCapacity> frames_;
};

struct Mailbox {
  FrameRing frames;
  FrameRing returns;  // Frames of the receiving shard's queue that are no longer needed: never more
                      // than it has handed over, so there is room.
};

// Shared by the shards. The links of all queues end together, with the last shard: a link may hold
// frames of another's.
struct Port {
  explicit Port(std::vector<std::unique_ptr<Link>> links)
      : queues(std::move(links)), boxes(queues.size() * queues.size()) {}
  Mailbox& box(std::size_t from, std::size_t to) { return boxes[from * queues.size() + to]; }

  std::vector<std::unique_ptr<Link>> queues;
  std::vector<Mailbox> boxes;
};

class ShardLink final : public Link {
 public:
  ShardLink(std::shared_ptr<Port> port, std::size_t shard)
      : port_(std::move(port)),
        queue_(*port_->queues[shard]),
        shard_(static_cast<std::uint8_t>(shard)),
        capabilities_(queue_.capabilities()) {
    capabilities_.shard = shard_;
    capabilities_.shards = static_cast<std::uint8_t>(port_->queues.size());
    const std::size_t frames = capabilities_.max_kept_frames;
    most_away_ = std::min(kMostHandedOver, frames / 4);
    if (frames != 0) {
      capabilities_.max_kept_bytes -= capabilities_.max_kept_bytes / frames * most_away_;
      capabilities_.max_kept_frames -= most_away_;
    }
  }

  const LinkCapabilities& capabilities() const override { return capabilities_; }

  // Handed-over frames first: they have waited longer.
  std::size_t receive(std::span<RxFrame> frames) override {
    std::size_t count = 0;
    for (std::size_t from = 0; from < port_->queues.size(); ++from) {
      if (from == shard_) continue;
      Mailbox& box = port_->box(from, shard_);
      if (RxFrame done; away_ != 0) {
        while (box.returns.pop(done)) {
          --away_;
          queue_.release(std::span(&done, 1));
        }
      }
      while (count < frames.size() && box.frames.pop(frames[count])) ++count;
    }
    const std::span rest = frames.subspan(count);
    const std::size_t got = rest.empty() ? 0 : queue_.receive(rest);
    for (RxFrame& frame : rest.first(got)) frame.port = shard_;
    return count + got;
  }

  void release(std::span<RxFrame> frames) override {
    for (RxFrame& frame : frames) {
      if (frame.kept || frame.handle == nullptr) continue;
      if (frame.hand_to == RxFrame::kNobody && frame.port == shard_) [[likely]]
        continue;
      if (frame.hand_to == RxFrame::kNobody || !hand_over(frame)) {
        frame.hand_to = RxFrame::kNobody;
        if (frame.port == shard_) continue;
        give_back(frame);
      }
      frame.handle = nullptr;  // Now another shard's.
    }
    queue_.release(frames);
  }

  std::size_t transmit(std::span<const TxFrame> frames) override { return queue_.transmit(frames); }
  TransmitRoom transmit_room(TimePoint now) override { return queue_.transmit_room(now); }
  LinkState state() override { return queue_.state(); }
  std::uint32_t map_memory(const void* address, std::size_t size_bytes) override {
    return queue_.map_memory(address, size_bytes);
  }
  void unmap_memory(std::uint32_t key) override { queue_.unmap_memory(key); }
  void note_abandoned_payload() override { queue_.note_abandoned_payload(); }
  const LinkCounters& counters() const override {
    counters_ = queue_.counters();
    counters_.rx_mailbox_full = mailbox_full_;
    return counters_;
  }
  std::string describe() const override { return queue_.describe(); }

 private:
  // False: there is no room, and the frame is still ours.
  bool hand_over(const RxFrame& frame) {
    assert(frame.hand_to < port_->queues.size() && frame.hand_to != shard_);
    const bool is_own = frame.port == shard_;
    RxFrame letter = frame;
    letter.hand_to = RxFrame::kNobody;
    if ((is_own && away_ == most_away_) || !port_->box(shard_, frame.hand_to).frames.push(letter)) {
      ++mailbox_full_;
      return false;
    }
    if (is_own) ++away_;
    return true;
  }
  void give_back(const RxFrame& frame) {
    [[maybe_unused]] const bool has_room = port_->box(shard_, frame.port).returns.push(frame);
    assert(has_room);
  }

  const std::shared_ptr<Port> port_;
  Link& queue_;
  const std::uint8_t shard_;
  LinkCapabilities capabilities_;
  std::size_t most_away_ = 0;
  std::size_t away_ = 0;  // Frames of our queue that another shard holds.
  std::uint64_t mailbox_full_ = 0;
  mutable LinkCounters counters_;  // Made by the last counters().
};

}  // namespace

std::vector<std::unique_ptr<Link>> join_shards(std::vector<std::unique_ptr<Link>> queues) {
  const auto port = std::make_shared<Port>(std::move(queues));
  std::vector<std::unique_ptr<Link>> shards;
  for (std::size_t i = 0; i < port->queues.size(); ++i)
    shards.push_back(std::make_unique<ShardLink>(port, i));
  return shards;
}

}  // namespace ztcp::link
