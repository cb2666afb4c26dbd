// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC in virtual time: a ring of so many frames, a line of so many bits per second, and a cable
// with loss and delay. It refuses frames when the ring is full, as devices do; while the link is
// not up it receives nothing and drops the frames it is to send.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/clock.h"
#include "tests/sim/frames.h"
#include "transport/link/impairment.h"
#include "transport/link/link.h"

namespace ztcp::sim {

struct LineOptions {
  std::uint64_t bits_per_second = 10'000'000'000;
  std::size_t ring_frames = 64;
  Duration cable = std::chrono::microseconds(5);
  double loss = 0;
  std::uint16_t mtu_bytes = 1500;
  bool says_room = true;  // False: does not report the ring's room, as most DPDK drivers.
  std::uint64_t seed = 1;
};

class LineLink final : public link::Link {
 public:
  explicit LineLink(const LineOptions& options) : options_(options), dice_(options.seed) {
    capabilities_.mtu_bytes = options.mtu_bytes;
  }
  // The peer receives the frames that this one sends.
  void join(LineLink& peer) { peer_ = &peer; }

  // Moves the line and the cable on to `now`.
  void advance(TimePoint now) {
    if (is_stuck) {
      for (InRing& waiting : ring_) waiting.done += now - now_;
    }
    while (!ring_.empty() && ring_.front().done <= now) {
      InRing& front = ring_.front();
      queued_bytes_ -= front.bytes.size();
      line_was_busy_ += front.time;
      if (!dice_.chance(options_.loss))
        peer_->arriving_.emplace_back(front.done + options_.cable, std::move(front.bytes));
      else
        ++lost;
      ring_.pop_front();
    }
    now_ = now;
  }
  TimePoint next_event() const {
    TimePoint next = ring_.empty() ? kNever : ring_.front().done;
    if (!arriving_.empty()) next = std::min(next, arriving_.front().first);
    return next;
  }
  Duration time_busy() const { return line_was_busy_; }
  // Received frames that were not given back.
  std::size_t held_frames() const { return out_.size(); }

  const link::LinkCapabilities& capabilities() const override { return capabilities_; }
  std::size_t receive(std::span<RxFrame> frames) override {
    if (on_receive) on_receive();
    std::size_t count = 0;
    while (is_up() && count < frames.size() && !arriving_.empty() &&
           arriving_.front().first <= now_) {
      auto frame = std::make_unique<ReceivedFrame>(std::move(arriving_.front().second));
      arriving_.pop_front();
      frames[count] = frame->view();
      out_.emplace(frames[count++].handle, std::move(frame));
    }
    return count;
  }
  void release(std::span<RxFrame> frames) override {
    for (const RxFrame& frame : frames)
      if (!frame.kept) out_.erase(frame.handle);
  }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    std::size_t taken = 0;
    for (const TxFrame& frame : frames) {
      if (is_stuck || ring_.size() >= options_.ring_frames || (refuses && refuses(frame))) {
        ++refused;
        break;
      }
      if (!is_up()) {
        ++counters_.tx_dropped;
        ++taken;
        continue;
      }
      if (frame.l3_bytes != 0) ++sent_segments;
      Bytes bytes = std::move(put_on_cable(frame)[0]);
      if (corrupts) corrupts(bytes);
      const Duration time(bytes.size() * 8'000'000'000U / options_.bits_per_second);
      const TimePoint begins = ring_.empty() ? now_ : std::max(now_, ring_.back().done);
      queued_bytes_ += bytes.size();
      taken_bytes_ += bytes.size();
      most_queued_bytes = std::max(most_queued_bytes, queued_bytes_);
      ++sent;
      ring_.push_back({begins + time, time, std::move(bytes)});
      ++taken;
    }
    return taken;
  }
  link::TransmitRoom transmit_room(TimePoint) override {
    if (!options_.says_room) return {};
    return {.frames = is_stuck ? 0 : options_.ring_frames - ring_.size(),
            .tells_bytes = true,
            .taken_bytes = taken_bytes_,
            .queued_bytes = queued_bytes_};
  }
  LinkState state() override { return state_now; }
  std::uint32_t map_memory(const void*, std::size_t) override { return 1; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return "line"; }

  LinkState state_now = LinkState::kUp;
  bool is_stuck = false;  // The device neither sends nor takes frames.
  // Hooks: `refuses` is asked for each frame whether the ring is full just then; receive() calls
  // on_receive; `corrupts` changes a frame on the cable.
  std::function<bool(const TxFrame&)> refuses;
  std::function<void()> on_receive;
  std::function<void(Bytes&)> corrupts;
  std::uint64_t sent = 0;
  std::uint64_t sent_segments = 0;  // TCP segments only.
  std::uint64_t refused = 0;
  std::uint64_t lost = 0;
  std::uint64_t most_queued_bytes = 0;

 private:
  struct InRing {
    TimePoint done;
    Duration time;
    Bytes bytes;
  };
  LineOptions options_;
  link::Dice dice_;
  LineLink* peer_ = nullptr;
  TimePoint now_{};
  std::deque<InRing> ring_;
  std::deque<std::pair<TimePoint, Bytes>> arriving_;
  std::unordered_map<void*, std::unique_ptr<ReceivedFrame>> out_;
  std::uint64_t taken_bytes_ = 0;
  std::uint64_t queued_bytes_ = 0;
  Duration line_was_busy_{};
  link::LinkCapabilities capabilities_;
  link::LinkCounters counters_;
};

}  // namespace ztcp::sim
