// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A path that silently carries smaller packets than it did when the connection was opened.
#include <algorithm>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

class BlackHole : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 100'000;
  BlackHole() {
    pair.drop = [this](const TxFrame& frame, bool from_left) {
      if (!from_left) return false;
      // Super-segments are cut by the link.
      const std::size_t payload =
          frame.segment_size_bytes != 0 ? frame.segment_size_bytes : frame.payload_bytes;
      const std::size_t packet = frame.header_bytes - frame.l2_bytes + payload;
      return packet > path_mtu || (drop_small && payload <= 1);
    };
    pair.connect();
    send();
    EXPECT_TRUE(pair.run_until([&] { return pair.client.acked == kBytes; }, 1s));
  }
  void send() {
    const Fragment fragment{data.data(), kBytes, kUnmapped};
    ASSERT_TRUE(pair.client.stream->write({}, std::span(&fragment, 1)));
  }
  bool send_and_wait(Duration limit) {
    const std::uint64_t target = pair.client.acked + kBytes;
    send();
    return pair.run_until([&] { return pair.client.acked == target || pair.client.failed; },
                          limit) &&
           !pair.client.failed;
  }
  // The full size is tried again before the owner is told.
  void confirm() {
    ASSERT_FALSE(pair.run_until([&] { return pair.client.failed.has_value(); }, 3s));
  }
  std::uint32_t mss() const {
    std::uint32_t bytes = 0;
    pair.left.for_each_connection([&](const ConnectionStatistics& s) { bytes = s.mss_bytes; });
    return bytes;
  }
  const Counters& counters() const { return pair.left.counters(); }

  const Bytes data = pattern(kBytes);
  std::size_t path_mtu = 9000;
  bool drop_small = false;
  Pair pair;
};

TEST_F(BlackHole, IsFoundByTimeoutsAndAvoided) {
  for (const std::size_t mtu : {1450U, 1300U, 1200U, 600U}) {
    path_mtu = mtu;
    const TimePoint began = pair.now;
    ASSERT_TRUE(send_and_wait(7s)) << mtu;
    EXPECT_LT(in_ms(pair.now - began), 500) << mtu;
    confirm();
  }
  // 1400, 1280, 1024, 576.
  EXPECT_EQ(counters().path_mtu_cuts, 4U);
  std::vector<std::uint32_t> sizes;
  while (const auto change = pair.left.take_path_change()) {
    EXPECT_EQ(change->remote, IpAddress(kPeerIp));
    EXPECT_EQ(change->cause, PathMtuChange::Cause::kSilence);
    sizes.push_back(change->now_bytes);
  }
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{1400, 1280, 1024, 576}));
  Bytes all;
  for (int i = 0; i < 5; ++i) all.insert(all.end(), data.begin(), data.end());
  EXPECT_EQ(pair.server.received, all);
}

TEST_F(BlackHole, StatisticsNameBothSizes) {
  path_mtu = 1300;
  ASSERT_TRUE(send_and_wait(7s));
  pair.left.for_each_connection([](const ConnectionStatistics& s) {
    EXPECT_EQ(s.mss_bytes, 1280U - 52);
    EXPECT_EQ(s.full_mss_bytes, 1500U - 52);
  });
}

TEST_F(BlackHole, IsNotAssumedWhereNothingArrives) {
  path_mtu = 0;
  send();
  ASSERT_FALSE(pair.run_until([&] { return pair.client.failed.has_value(); }, 3s));
  EXPECT_EQ(counters().path_mtu_cuts, 0U);
  path_mtu = 9000;
  ASSERT_TRUE(pair.run_until([&] { return pair.client.acked == 2 * kBytes; }, 3s));
}

// Data segments are lost at random, repeatedly, and the small segments beside them are not.
TEST_F(BlackHole, IsNotAssumedAfterManyLostFullSegments) {
  const auto hole = pair.drop;
  int losses = 0;
  pair.drop = [&](const TxFrame& frame, bool from_left) {
    // The first probe that follows the timeouts gets through.
    if (from_left && frame.payload_bytes > 1 && losses < 4) return ++losses, true;
    return hole(frame, from_left);
  };
  ASSERT_TRUE(send_and_wait(3s));
  EXPECT_EQ(counters().path_mtu_cuts, 0U);
}

// Full queues lose large packets for a while and let small ones in: such a cut is undone within a
// moment, and not reported.
TEST_F(BlackHole, TemporaryCutIsUndoneSilently) {
  path_mtu = 1300;
  ASSERT_TRUE(send_and_wait(7s));
  EXPECT_EQ(mss(), 1280U - 52);
  path_mtu = 9000;
  ASSERT_FALSE(pair.run_until([] { return false; }, 1s));
  EXPECT_EQ(mss(), 1500U - 52);
  ASSERT_TRUE(send_and_wait(1s));
  EXPECT_EQ(counters().path_mtu_cuts, 0U);
  EXPECT_EQ(counters().path_mtu_raises, 0U);
  EXPECT_FALSE(pair.left.take_path_change());
}

TEST_F(BlackHole, FullSizeIsTriedAgainAndUsed) {
  path_mtu = 1300;
  ASSERT_TRUE(send_and_wait(7s));
  confirm();
  EXPECT_EQ(counters().path_mtu_cuts, 1U);
  while (pair.left.take_path_change()) {
  }
  ASSERT_FALSE(pair.run_until([] { return false; }, 150s)) << "asked twice in vain";
  EXPECT_FALSE(pair.client.failed);
  EXPECT_EQ(counters().path_mtu_raises, 0U);
  path_mtu = 9000;
  ASSERT_TRUE(pair.run_until([&] { return counters().path_mtu_raises == 1; }, 70s));
  const auto change = pair.left.take_path_change();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->now_bytes, 1500U);
  EXPECT_EQ(change->cause, PathMtuChange::Cause::kProbe);
  const std::uint64_t segments = counters().tx_segments;
  ASSERT_TRUE(send_and_wait(1s));
  EXPECT_LE(counters().tx_segments - segments, kBytes / 1448 + 5) << "full segments again";
}

// Answers to probes are not reports of needless retransmissions.
TEST_F(BlackHole, AnswersToProbesAreNoDuplicatesOfData) {
  path_mtu = 1300;
  ASSERT_TRUE(send_and_wait(7s));
  confirm();
  path_mtu = 9000;
  ASSERT_TRUE(pair.run_until([&] { return counters().path_mtu_raises == 1; }, 130s));
  EXPECT_EQ(counters().spurious_recoveries, 0U);
}

}  // namespace
}  // namespace ztcp::tcp::test
