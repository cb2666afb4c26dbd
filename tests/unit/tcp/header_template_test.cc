// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/header_template.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

TEST(Offload, SuperSegmentsAreWholeSegments) {
  StackConfig config = test_config();
  config.max_super_segment_bytes = 65536;
  config.tcp.pacing = false;
  Peer peer(config);
  peer.open();
  peer.write(10 * 1448 + 700);
  std::vector<TxFrame> out(8);
  ASSERT_EQ(peer.stack.collect(peer.now, out), 1U);
  EXPECT_EQ(out[0].payload_bytes, 10U * 1448) << "the window, in whole segments";
  EXPECT_EQ(out[0].segment_size_bytes, 1448);
  EXPECT_EQ(peer.stack.counters().tx_segments, 3U + 10) << "SYN, ACK, probe, and ten";
  peer.advance(1ms);
  // One of the segments it was cut into got lost: only that one is repeated.
  peer.ack(peer.first() + 1448, {{peer.first() + 2 * 1448, peer.first() + 10 * 1448}});
  ASSERT_GE(peer.stack.collect(peer.now, out), 1U);
  EXPECT_EQ(out[0].payload_bytes, 1448U);
  EXPECT_EQ(out[0].segment_size_bytes, 0);
}

TEST(Offload, ChecksumFieldHoldsThePseudoHeader) {
  StackConfig config = test_config();
  config.tx_checksum_offload = true;
  Stack stack(config, {1, 2});
  User user;
  std::vector<TxFrame> out(8);
  stack.collect(at(0s), out);  // The announcement.
  ASSERT_TRUE(stack.connect(at(0s), {kOurIp, 80}, user));
  ASSERT_EQ(stack.collect(at(0s), out), 1U);
  EXPECT_TRUE(out[0].checksum_offload);
  EXPECT_EQ(wire::load_be16(out[0].header.data() + 14 + 10), 0) << "IPv4: the NIC's";
  EXPECT_EQ(wire::load_be16(out[0].header.data() + 14 + 20 + 16),
            wire::pseudo_header_checksum(kOurIp, kOurIp, out[0].header_bytes - 34U).folded());
}

}  // namespace
}  // namespace ztcp::tcp::test
