// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// TIME-WAIT: events that end it early, and others.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

// A connection in TIME-WAIT; the peer's side of it ended at peer_first().
class TimeWait : public testing::Test {
 protected:
  TimeWait() {
    peer.open_passive();
    peer.write(5000);
    peer.collect();
    peer.ack(peer.first() + 5000);
    peer.user.stream->close();
    peer.collect();
    peer.send(
        {.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first() + 5001});
    peer.collect();
    peer.advance(20ms);
  }
  // Still in TIME-WAIT: it acknowledges the FIN once more.
  void expect_waits() {
    peer.advance(20ms);
    peer.send(
        {.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first() + 5001});
    const Seg answer = peer.collect_one();
    EXPECT_EQ(flags_of(answer), ".");
    EXPECT_EQ(answer.ack, peer.peer_first() + 1);
  }
  Peer peer;
};

// RFC 1122 section 4.2.2.13: from a number beyond all used ones.
TEST_F(TimeWait, ANewSynBeginsANewConnection) {
  peer.send({.flags = wire::kSyn, .seq = peer.irs + 1000});
  const Seg answer = peer.collect_one();
  EXPECT_EQ(flags_of(answer), "S.");
  EXPECT_EQ(answer.ack, peer.irs + 1001);
  EXPECT_LT(answer.seq - (peer.first() + 5001), 1U << 31);
}

// RFC 9293 section 3.10.7.4, eighth: a peer that repeats its FIN has not received our ACK.
TEST_F(TimeWait, IsRestartedByARepeatedFin) {
  peer.pass(peer.config.tcp.time_wait - 100ms);
  expect_waits();
  peer.pass(peer.config.tcp.time_wait - 100ms);
  expect_waits();
}

TEST_F(TimeWait, IsNotEndedByASynWithoutAListener) {
  peer.stack.unlisten(kListenPort);
  peer.send({.flags = wire::kSyn, .seq = peer.irs + 1000});
  EXPECT_EQ(flags_of(peer.collect_one()), ".") << "RFC 5961 section 4.2";
  expect_waits();
}

TEST_F(TimeWait, IsNotEndedByASynWithOtherFlags) {
  for (const auto flags : {wire::kSyn | wire::kFin, wire::kSyn | wire::kRst}) {
    peer.send({.flags = flags, .seq = peer.irs + 1000});
    for (const Seg& answer : peer.collect()) EXPECT_EQ(flags_of(answer), ".");
    expect_waits();
  }
}

TEST_F(TimeWait, IsNotEndedByAnOldSyn) {
  Seg old{.flags = wire::kSyn, .seq = peer.irs - 1000};
  old.options.timestamps = wire::Timestamps{peer.timestamp() - 1'000'000, 0};
  peer.send(old);
  EXPECT_EQ(flags_of(peer.collect_one()), ".");
  expect_waits();
}

// A full table uses the slot that TIME-WAIT gives up.
TEST(TimeWaitAlone, GivesUpItsOwnSlot) {
  StackConfig config = test_config();
  config.max_connections = 1;
  Peer peer(config);
  peer.open_passive();
  peer.user.stream->close();
  peer.collect();
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first() + 1});
  peer.collect();
  peer.advance(10ms);
  peer.send({.flags = wire::kSyn, .seq = peer.irs + 1000});
  EXPECT_EQ(flags_of(peer.collect_one()), "S.");
}

}  // namespace
}  // namespace ztcp::tcp::test
