// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A connection that sends to a hand-driven peer.
#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp::test {

// Without segments that only ask whether the peer lives.
inline std::vector<Seg> bulk(std::vector<Seg> segs) {
  std::erase_if(segs, [](const Seg& seg) { return seg.payload.size() <= 1; });
  return segs;
}

class Sending : public testing::Test {
 protected:
  Sending() : peer(make_config()) { peer.open(); }
  static StackConfig make_config() {
    StackConfig config = test_config();
    config.tcp.pacing = false;
    return config;
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * kMss; }
  // Numbers of the segments, followed by any other frames.
  std::vector<int> numbers(const std::vector<Seg>& segs) const {
    std::vector<int> result;
    for (const Seg& seg : segs) result.push_back(static_cast<int>((seg.seq - peer.first()) / kMss));
    return result;
  }
  // Two segments, acknowledged one round trip of 1 ms later, so that the RTT is known.
  void warm_up() {
    peer.write(2 * kMss);
    ASSERT_EQ(peer.collect().size(), 2U);
    peer.advance(1ms);
    peer.ack(seq(2));
    base = 2;
  }
  const Counters& counters() const { return peer.stack.counters(); }

  Peer peer;
  std::uint32_t base = 0;
};

}  // namespace ztcp::tcp::test
