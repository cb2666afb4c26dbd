// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Both sessions of a verbs connection over queue pairs that do what the verbs allow, in every
// order.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/queue_pair_wire.h"
#include "transport/verbs/session/recv_session.h"
#include "transport/verbs/session/send_session.h"

namespace ztcp::sim {

inline const verbs::RailKeys kLocalKeys = keys_of(1);
inline const verbs::RailKeys kRingKeys = keys_of(2);
inline const verbs::RailKeys kPayloadKeys = keys_of(3);
inline constexpr std::size_t kMaxBytes = 300'000;

struct Setup {
  std::vector<std::uint32_t> rails{0};      // By queue pair.
  std::vector<std::uint32_t> rates_mbps{};  // By rail; 100 where there is none.
  std::uint32_t inline_bytes = 64;
  std::uint64_t seed = 1;
};

class Connection {
 public:
  explicit Connection(const Setup& setup) : wire(setup.rails, kLocalKeys, setup.seed) {
    wire.left.memory = {{reinterpret_cast<const std::byte*>(&ring), sizeof ring, kRingKeys}};
    std::vector<verbs::QueuePairFacts> queue_pairs;
    for (const std::uint32_t rail : setup.rails)
      queue_pairs.push_back(
          {.rail = rail,
           .rate_mbps = rail < setup.rates_mbps.size() ? setup.rates_mbps[rail] : 100,
           .inline_bytes = setup.inline_bytes});
    sender.emplace(std::move(queue_pairs), ring, wire.left);
    receiver.emplace(
        verbs::RecvSettings{.rails = setup.rails,
                            .inline_bytes = setup.inline_bytes,
                            .ring = {reinterpret_cast<std::uint64_t>(&ring), kRingKeys},
                            .ring_lkeys = kLocalKeys},
        staged, wire.right);
    EXPECT_TRUE(receiver->begin());
  }

  Status poll_sender() {
    while (!wire.left.completions.empty() && wire.draw() % 4 != 0) {
      const auto told = wire.left.completions.front();
      wire.left.completions.pop_front();
      ZTCP_CHECK(sender->on_completion(told.queue_pair, told.id));
    }
    return {};
  }
  Status poll_receiver() {
    while (!wire.right.completions.empty() && wire.draw() % 4 != 0) {
      const auto told = wire.right.completions.front();
      wire.right.completions.pop_front();
      ZTCP_CHECK(told.is_immediate
                     ? receiver->on_immediate(told.queue_pair, told.immediate, told.size_bytes)
                     : receiver->on_completion(told.queue_pair, told.id));
    }
    return {};
  }
  Status poll_all() {
    while (!wire.left.completions.empty() || !wire.right.completions.empty())
      ZTCP_CHECK(poll_both());
    return {};
  }
  Status poll_both() {
    ZTCP_CHECK(poll_sender());
    return poll_receiver();
  }
  bool is_quiet() const {
    return sender->is_idle() && receiver->is_idle() && wire.left.completions.empty() &&
           wire.right.completions.empty();
  }

  verbs::Ring ring{};
  verbs::Ring staged{};
  QueuePairWire wire;
  std::optional<verbs::SendSession> sender;
  std::optional<verbs::RecvSession> receiver;
};

using Bytes = std::vector<std::byte>;

}  // namespace ztcp::sim
