// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC in virtual time that spreads received frames over the queues of several nodes (tcp::Stack,
// ustack::Engine), and the mailboxes between them: hand-over between threads (link/shards.h)
// happens here with seeded delays. To a World it is one node.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/frame.h"
#include "transport/link/impairment.h"
#include "transport/wire/frame_parser.h"
#include "transport/wire/receive_spread.h"

namespace ztcp::sim {

// As drivers set one up: a random key, and queues in turn.
inline std::shared_ptr<const wire::ReceiveSpread> random_spread(std::size_t queues,
                                                                std::uint64_t seed) {
  auto spread = std::make_shared<wire::ReceiveSpread>();
  link::Dice dice(seed);
  for (int i = 0; i < 40; ++i) spread->key.push_back(static_cast<std::byte>(dice.below(256)));
  for (std::size_t i = 0; i < 128; ++i)
    spread->table.push_back(static_cast<std::uint16_t>(i % queues));
  return spread;
}

template <class Node>
class SharedNic {
 public:
  // Frames other than TCP go to the first queue, as with most NICs.
  using Spread = std::function<std::size_t(Endpoint source, Endpoint destination)>;

  SharedNic(std::vector<Node*> nodes, Spread spread, std::uint64_t seed)
      : nodes_(std::move(nodes)), spread_(std::move(spread)), dice_(seed) {}

  void on_frames(TimePoint now, std::span<RxFrame> frames) {
    for (RxFrame& frame : frames) {
      frame.port = static_cast<std::uint8_t>(queue_of(frame));
      give(now, frame, frame.port);
    }
  }
  void on_timers(TimePoint now) {
    while (!letters_.empty() && letters_.front().due <= now) {
      Letter letter = letters_.front();
      letters_.pop_front();
      letter.frame.kept = false;
      letter.frame.hand_to = RxFrame::kNobody;
      give(now, letter.frame, letter.to);
      if (letter.frame.kept) continue;
      --away_;
      released_.push_back(letter.frame);
    }
    for (Node* const node : nodes_) node->on_timers(now);
  }
  std::size_t collect(TimePoint now, std::span<TxFrame> out) {
    std::size_t count = 0;
    for (Node* const node : nodes_) count += node->collect(now, out.subspan(count));
    return count;
  }
  TimePoint next_deadline() const {
    TimePoint next = letters_.empty() ? kNever : letters_.front().due;
    for (const Node* const node : nodes_) next = std::min(next, node->next_deadline());
    return next;
  }
  std::size_t take_released(std::span<RxFrame> out) {
    std::size_t count = 0;
    for (; count < out.size() && !released_.empty(); ++count) {
      out[count] = released_.front();
      released_.pop_front();
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::size_t more = nodes_[i]->take_released(out.subspan(count));
      for (const RxFrame& frame : out.subspan(count, more)) away_ -= frame.port != i ? 1U : 0U;
      count += more;
    }
    return count;
  }

  std::uint64_t handed_over = 0;
  // Limit of frames handed over and not given back; more are dropped.
  std::size_t most_away = SIZE_MAX;

 private:
  struct Letter {
    TimePoint due;
    std::size_t to;
    RxFrame frame;
  };

  std::size_t queue_of(const RxFrame& frame) const {
    const auto parsed = wire::parse_frame(frame);
    if (parsed.kind != wire::FrameKind::kTcp) return 0;
    return spread_({parsed.ip.source, parsed.tcp.source_port},
                   {parsed.ip.destination, parsed.tcp.destination_port});
  }
  void give(TimePoint now, RxFrame& frame, std::size_t to) {
    nodes_[to]->on_frames(now, std::span(&frame, 1));
    if (frame.hand_to == RxFrame::kNobody) return;
    if (to == frame.port) {
      if (away_ == most_away) return;
      ++away_;
    }
    ++handed_over;
    frame.kept = true;  // Ours until it is released.
    const TimePoint latest = letters_.empty() ? now : std::max(now, letters_.back().due);
    letters_.push_back({latest + Duration(dice_.below(20'000)), frame.hand_to, frame});
  }

  std::vector<Node*> nodes_;
  Spread spread_;
  link::Dice dice_;
  std::deque<Letter> letters_;  // By due time.
  std::deque<RxFrame> released_;
  std::size_t away_ = 0;
};

}  // namespace ztcp::sim
