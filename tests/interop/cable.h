// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Link with a bad cable in front of it: the simulator's Wire, one each way, in real time. Its
// losses, delays and duplicates follow from the seed and the order of frames.
//
// Super-segments are cut here, so each frame on the cable is one packet; the tap behind it is
// opened without offloads for the same reason.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/sim/frames.h"
#include "tests/sim/wire.h"
#include "transport/link/link.h"

namespace ztcp::interop {

TimePoint real_now();

// A finished packet as a frame to send; a view of `bytes`.
TxFrame as_frame(std::span<const std::byte> bytes);
// Moves frames that have arrived at one link to another, as a hub would.
void forward(link::Link& from, link::Link& to);

class Cable final : public link::Link {
 public:
  // A view of each frame, in the order it enters the cable.
  using Observer = std::function<void(bool outgoing, const sim::Bytes& frame)>;

  Cable(std::unique_ptr<link::Link> inner, const link::Impairment& outgoing,
        const link::Impairment& incoming, std::uint64_t seed)
      : inner_(std::move(inner)), out_(outgoing, seed * 2 + 1), in_(incoming, seed * 2 + 2) {}

  void observe(Observer observer) { observer_ = std::move(observer); }
  sim::Wire& outgoing() { return out_; }
  sim::Wire& incoming() { return in_; }

  const link::LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  std::size_t receive(std::span<RxFrame> frames) override;
  void release(std::span<RxFrame> frames) override;
  std::size_t transmit(std::span<const TxFrame> frames) override;
  LinkState state() override { return inner_->state(); }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return "cable to " + inner_->describe(); }

 private:
  void send_due();

  std::unique_ptr<link::Link> inner_;
  sim::Wire out_;
  sim::Wire in_;
  Observer observer_;
  std::unordered_map<void*, std::unique_ptr<sim::ReceivedFrame>> received_;
};

}  // namespace ztcp::interop
