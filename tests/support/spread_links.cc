// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/spread_links.h"

#include <functional>
#include <random>
#include <utility>

#include "transport/link/memory_direction.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::test {
namespace {

constexpr std::uint32_t kFrames = 512;  // From each queue to each.
using Directions = std::vector<std::shared_ptr<link::Direction>>;

class QueueLink final : public link::Link {
 public:
  // `out` and `in` are indexed by the other NIC's queues.
  QueueLink(const SpreadNic& here, const SpreadNic& there, std::size_t queue,
            std::uint16_t mtu_bytes, Directions out, Directions in)
      : spread_(there.spread), state_(here.state), out_(std::move(out)), in_(std::move(in)) {
    capabilities_.mtu_bytes = mtu_bytes;
    capabilities_.mac = here.mac;
    capabilities_.shard = static_cast<std::uint8_t>(queue);
    capabilities_.shards = static_cast<std::uint8_t>(here.queues);
    capabilities_.spread = here.told;
    capabilities_.max_kept_frames = kFrames / 2;
    capabilities_.max_kept_bytes = capabilities_.max_kept_frames * in_[0]->bytes_per_frame;
  }
  const link::LinkCapabilities& capabilities() const override { return capabilities_; }

  std::size_t receive(std::span<RxFrame> frames) override {
    if (!is_up()) return 0;
    std::size_t count = 0;
    for (const auto& way : in_) {
      std::uint32_t number = 0;
      while (count < frames.size() && way->filled.pop(number)) {
        RxFrame& frame = frames[count++];
        frame = {};
        frame.head = {way->frame(number), way->sizes[number]};
        frame.handle = way->frame(number);
        frame.charge_bytes = way->bytes_per_frame;
        counters_.rx_frames += 1;
      }
    }
    return count;
  }
  void release(std::span<RxFrame> frames) override {
    for (RxFrame& frame : frames) {
      if (frame.kept || frame.handle == nullptr) continue;
      const auto* memory = static_cast<const std::byte*>(std::exchange(frame.handle, nullptr));
      for (const auto& way : in_) {
        const std::byte* const begin = way->memory.data();
        if (std::less<>{}(memory, begin) || !std::less<>{}(memory, begin + way->memory.size()))
          continue;
        way->free.push(static_cast<std::uint32_t>(memory - begin) / way->bytes_per_frame);
      }
    }
  }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    std::size_t taken = 0;
    for (; taken < frames.size(); ++taken) {
      const TxFrame& frame = frames[taken];
      if (!is_up()) {
        counters_.tx_dropped += 1;
        continue;
      }
      link::Direction& way = *out_[queue_of(frame)];
      std::uint32_t number = 0;
      if (!way.free.pop(number)) break;
      way.sizes[number] = link::copy_frame(frame, way.frame(number));
      way.filled.push(number);
      counters_.tx_frames += 1;
    }
    return taken;
  }
  LinkState state() override {
    return state_ == nullptr ? LinkState::kUp : state_->load(std::memory_order_relaxed);
  }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return "spread"; }

 private:
  std::size_t queue_of(const TxFrame& frame) const {
    std::vector<std::byte> bytes(frame.header_bytes + frame.payload_bytes);
    link::copy_frame(frame, bytes.data());
    RxFrame view;
    view.head = bytes;
    const auto parsed = wire::parse_frame(view);
    if (parsed.kind != wire::FrameKind::kTcp) return 0;
    return spread_({parsed.ip.source, parsed.tcp.source_port},
                   {parsed.ip.destination, parsed.tcp.destination_port});
  }

  std::function<std::size_t(Endpoint, Endpoint)> spread_;
  const std::atomic<LinkState>* state_;
  Directions out_;
  Directions in_;
  link::LinkCapabilities capabilities_;
  link::LinkCounters counters_;
};

}  // namespace

std::array<QueueLinks, 2> make_spread_links(const std::array<SpreadNic, 2>& nics,
                                            std::uint16_t mtu_bytes) {
  const std::uint32_t frame_bytes = (mtu_bytes + 18U + 63U) / 64 * 64;
  // ways[i][from][to]: from a queue of NIC i to a queue of the other NIC.
  std::array<std::vector<Directions>, 2> ways;
  for (std::size_t i = 0; i < 2; ++i) {
    ways[i].resize(nics[i].queues);
    for (Directions& from : ways[i])
      for (std::size_t to = 0; to < nics[1 - i].queues; ++to)
        from.push_back(std::make_shared<link::Direction>(kFrames, frame_bytes));
  }
  std::array<QueueLinks, 2> links;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t queue = 0; queue < nics[i].queues; ++queue) {
      Directions in;
      for (const Directions& from : ways[1 - i]) in.push_back(from[queue]);
      links[i].push_back(std::make_unique<QueueLink>(nics[i], nics[1 - i], queue, mtu_bytes,
                                                     ways[i][queue], std::move(in)));
    }
  }
  return links;
}

std::shared_ptr<const wire::ReceiveSpread> some_spread(std::size_t queues, std::uint32_t seed) {
  auto spread = std::make_shared<wire::ReceiveSpread>();
  std::mt19937 random(seed);
  for (int i = 0; i < 40; ++i) spread->key.push_back(static_cast<std::byte>(random()));
  for (std::size_t i = 0; i < 128; ++i)
    spread->table.push_back(static_cast<std::uint16_t>(i % queues));
  return spread;
}

}  // namespace ztcp::test
