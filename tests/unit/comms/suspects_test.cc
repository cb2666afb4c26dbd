// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// When a peer is found dead, in virtual time.
#include "transport/comms/suspects.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using namespace std::chrono_literals;

class SuspectsTest : public testing::Test {
 protected:
  static constexpr Ipv4Address kNic{0x0a010001};

  // Looks each millisecond, until `ends`. A living peer answers each probe after `answers_after`.
  void check_until(TimePoint ends) {
    for (; now <= ends; now += 1ms) {
      if (answer_at <= now) heard = std::exchange(answer_at, kNever);
      suspects.check(
          now,
          [&](IpAddress nic) {
            EXPECT_EQ(nic, kNic);
            ++probes;
            if (answers_after >= 0ms && answer_at == kNever) answer_at = now + answers_after;
          },
          [&](IpAddress) { return heard; },
          [&](const watch::Peer& peer) {
            EXPECT_EQ(peer.pid, 7U);
            ++dead;
          });
    }
  }

  TimePoint now{1s};
  TimePoint heard{};
  TimePoint answer_at = kNever;
  Duration answers_after = -1ms;  // Never.
  int probes = 0;
  int dead = 0;
  Suspects suspects{100ms};
};

TEST_F(SuspectsTest, SilentPeerIsDeadAfterHalfASecond) {
  suspects.add(now, {kNic, 7, "host"});
  check_until(TimePoint{1499ms});
  EXPECT_EQ(dead, 0);
  check_until(TimePoint{1510ms});
  EXPECT_EQ(dead, 1);
  EXPECT_EQ(probes, Suspects::kProbes);
  EXPECT_TRUE(suspects.empty());
}

TEST_F(SuspectsTest, PeerThatAnswersAProbeLives) {
  for (const Duration after : {0ms, 10ms, 90ms, 350ms}) {
    answers_after = after;
    suspects.add(now, {kNic, 7, "host"});
    check_until(now + 1s);
    answer_at = kNever;
    EXPECT_EQ(dead, 0) << after.count();
    EXPECT_TRUE(suspects.empty());
  }
}

// The dead peer's last frames arrive after the kernel reported its end.
TEST_F(SuspectsTest, FramesInFlightAtTheDeathAreNoSignOfLife) {
  suspects.add(now, {kNic, 7, "host"});
  answer_at = now + 20ms;
  check_until(now + 600ms);
  EXPECT_EQ(dead, 1);
}

// After a stall the answers may still wait in this host's receive ring.
TEST_F(SuspectsTest, ProbesAgainAfterAStallOfTheCaller) {
  suspects.add(now, {kNic, 7, "host"});
  check_until(now + 120ms);
  now += 10s;
  check_until(now + 50ms);
  EXPECT_EQ(dead, 0);
  answers_after = 1ms;
  check_until(now + 1s);
  EXPECT_EQ(dead, 0);
  EXPECT_TRUE(suspects.empty());
}

TEST_F(SuspectsTest, ProbesAgainAfterAStallBeforeTheLastLook) {
  suspects.add(now, {kNic, 7, "host"});
  check_until(now + 490ms);
  now += 100ms;
  check_until(now);
  EXPECT_EQ(dead, 0);
  check_until(now + 200ms);
  EXPECT_EQ(dead, 1) << "one more probe, and no more";
}

TEST_F(SuspectsTest, PeerOfTheSameNicIsAddedOnce) {
  suspects.add(now, {kNic, 7, "host"});
  suspects.add(now, {kNic, 7, "host"});
  check_until(now + 1s);
  EXPECT_EQ(dead, 1);
}

}  // namespace
}  // namespace ztcp::comms
