// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The product's turn in virtual time: connections, frames and memory when the link or a connection
// ends in the middle of a turn.
#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/turn_host.h"
#include "transport/ustack/engine/engine.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;
using Told = std::vector<std::string>;

constexpr std::size_t kBytes = 64 * TurnClient::kMessageBytes;

// Two connections from one host to the other.
class TurnTest : public testing::Test {
 protected:
  TurnTest() {
    from.link.join(to.link);
    to.link.join(from.link);
    to.inboxes = {&in[0], &in[1]};
    senders = {&from.connect(to, out[0]), &from.connect(to, out[1])};
  }
  void turn() {
    now += kTurn;
    from.turn(now);
    to.turn(now);
  }
  void run_for(Duration span) {
    for (const TimePoint end = now + span; now < end;) turn();
  }
  template <class Done>
  void run_until(Done&& done) {
    for (const TimePoint end = now + 10s; !done();) {
      ASSERT_LT(now, end);
      turn();
    }
  }
  bool all_done() const {
    return senders[0]->is_done() && senders[1]->is_done() && to.receivers.size() == 2 &&
           to.receivers[0]->is_done() && to.receivers[1]->is_done();
  }

  TimePoint now = TurnHost::kBegin;
  std::array<Bytes, 2> out{pattern(kBytes, 1), pattern(kBytes, 2)};
  std::array<Bytes, 2> in{Bytes(kBytes), Bytes(kBytes)};
  TurnHost from{1, {}};
  TurnHost to{2, {}};
  std::array<TurnSender*, 2> senders{};
};

TEST_F(TurnTest, TurnReportsWhetherAnythingMoved) {
  run_until([&] { return all_done(); });
  // The network decides which session comes first.
  EXPECT_TRUE((in[0] == out[0] && in[1] == out[1]) || (in[0] == out[1] && in[1] == out[0]));
  run_for(1ms);
  EXPECT_FALSE(from.moved);
  EXPECT_FALSE(to.moved);
  from.ring(senders[0]->index);
  turn();
  EXPECT_TRUE(from.moved);
  EXPECT_FALSE(to.moved);
}

// Both ends close, get the event inside their own turn, and are removed by that turn.
TEST_F(TurnTest, AClientThatRetiresInItsOwnEventIsRemoved) {
  run_until([&] { return all_done(); });
  const std::size_t index = senders[0]->index;
  senders[0]->close();
  senders[1]->close();
  to.receivers[0]->close();
  to.receivers[1]->close();
  run_until([&] { return !from.told.empty() && !to.told.empty(); });
  EXPECT_EQ(from.told, Told{"nobody"}) << "once, after the last client";
  EXPECT_EQ(to.told, Told{"nobody"});
  EXPECT_TRUE(from.clients.is_empty());
  // A late ring for a removed client is ignored.
  run_for(1ms);
  from.ring(index);
  turn();
  EXPECT_FALSE(from.moved);
  EXPECT_EQ(from.link.held_frames(), 0U);
  EXPECT_EQ(to.link.held_frames(), 0U);
}

// The index is free for the next client, which works as the first did.
TEST_F(TurnTest, ANewClientReusesTheIndexOfARemovedOne) {
  run_until([&] { return all_done(); });
  const std::size_t index = senders[0]->index;
  senders[0]->close();
  to.receivers[0]->close();
  to.receivers[1]->close();
  run_until([&] { return senders[1]->closed || !from.told.empty() || to.told == Told{"nobody"}; });
  Bytes more = pattern(kBytes, 3);
  Bytes inbox(kBytes);
  to.inboxes.push_back(&inbox);
  TurnSender& next = from.connect(to, more);
  EXPECT_EQ(next.index, index);
  run_until([&] { return next.is_done() && to.receivers.size() == 3; });
  EXPECT_EQ(inbox, more);
}

enum class Moment { kReceive, kPost, kTransmit };
class LinkGone : public TurnTest, public testing::WithParamInterface<Moment> {};
constexpr std::array kMomentNames = {"Receive", "Post", "Transmit"};
INSTANTIATE_TEST_SUITE_P(Moments, LinkGone,
                         testing::Values(Moment::kReceive, Moment::kPost, Moment::kTransmit),
                         [](const auto& row) {
                           return kMomentNames[static_cast<std::size_t>(row.param)];
                         });

// Makes the link disappear when it is asked for its posts.
class Saboteur final : public TurnClient {
 public:
  using TurnClient::TurnClient;
  void on_doorbell(TimePoint) override { host_.link.state_now = LinkState::kGone; }
  void close() override {}

 private:
  void abort() override {}
};

TEST_P(LinkGone, LosingTheLinkDuringATurnEndsEveryConnectionOnce) {
  run_until([&] { return to.receivers.size() == 2 && to.receivers[1]->done > 2; });
  Bytes none;
  Saboteur* saboteur = nullptr;
  std::size_t frames = 0;
  const auto gone = [&] { from.link.state_now = LinkState::kGone; };
  switch (GetParam()) {
    case Moment::kReceive:
      from.link.on_receive = gone;
      break;
    case Moment::kPost:
      saboteur = &from.attach(std::make_unique<Saboteur>(from, none));
      break;
    case Moment::kTransmit:
      from.link.refuses = [&](const TxFrame&) {
        if (++frames == 3) gone();
        return false;
      };
      break;
  }
  run_until([&] { return from.link.state_now == LinkState::kGone; });
  EXPECT_TRUE(from.told.empty()) << "the turn goes on to its end";
  const std::size_t all = saboteur != nullptr ? 3 : 2;
  run_for(ustack::Engine::kCheckInterval + 2 * kTurn);
  ASSERT_EQ(from.told.size(), all + 2) << from.told.size();
  EXPECT_EQ(from.told.front(), "link 2");
  for (std::size_t i = 0; i < all; ++i) EXPECT_EQ(from.told[i + 1], "lost " + std::to_string(i));
  EXPECT_EQ(from.told.back(), "nobody") << "removed in the turn that reported the loss";
  // The link stays lost, and there is no client to report it to.
  run_for(5ms);
  EXPECT_EQ(from.told.size(), all + 2);
  EXPECT_EQ(from.link.held_frames(), 0U);
  EXPECT_GT(from.link.counters().tx_dropped, 0U);
}

// A connect was in progress when the NIC was lost: its client is told, too, at the next look.
TEST_F(TurnTest, ALostLinkIsReportedToClientsAttachedLater) {
  run_until([&] { return to.receivers.size() == 2; });
  from.link.state_now = LinkState::kReset;
  run_for(2ms);
  EXPECT_EQ(from.told, (Told{"link 3", "lost 0", "lost 1", "nobody"}));
  from.told.clear();
  Bytes late = pattern(kBytes, 5);
  from.connect(to, late);
  run_for(2ms);
  ASSERT_EQ(from.told.size(), 2U);
  EXPECT_TRUE(from.told[0].starts_with("lost ")) << from.told[0];
  EXPECT_EQ(from.told[1], "nobody");
}

// An allocation fails inside a callback: the burst's frames still go back to the link.
TEST_F(TurnTest, AnExceptionLeavesNoFrameBehind) {
  to.on_done = [] { throw std::bad_alloc(); };
  bool thrown = false;
  while (!thrown) {
    now += kTurn;
    from.turn(now);
    try {
      to.turn(now);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
  }
  EXPECT_EQ(to.link.held_frames(), 0U);
}

// A carrier loss is reported and ends no session.
TEST_F(TurnTest, ALinkThatIsDownEndsNoSession) {
  run_until([&] { return to.receivers.size() == 2 && to.receivers[0]->done > 2; });
  from.link.state_now = LinkState::kDown;
  run_for(50ms);
  from.link.state_now = LinkState::kUp;
  run_until([&] { return all_done(); });
  EXPECT_EQ(from.told, (Told{"link 1", "link 0"}));
  EXPECT_FALSE(senders[0]->failed || senders[1]->failed);
}

// A rising counter of the stack or the link becomes a finding within a second.
TEST_F(TurnTest, ManyDamagedFramesBecomeAFinding) {
  run_until([&] { return all_done(); });
  std::size_t corrupted = 0;
  from.link.corrupts = [&](Bytes& frame) {
    if (corrupted == 30) return;
    ++corrupted;
    frame.back() ^= std::byte{1};
  };
  Bytes more = pattern(kBytes, 4);
  Bytes inbox(kBytes);
  to.inboxes.push_back(&inbox);
  TurnSender& next = from.connect(to, more);
  run_until([&] { return next.is_done(); });
  run_for(2s);
  EXPECT_EQ(inbox, more);
  ASSERT_EQ(to.findings.size(), 1U);
  EXPECT_EQ(to.findings[0].trouble, ustack::Trouble::kBadChecksum);
  EXPECT_GE(to.findings[0].total(), 10U);
  EXPECT_LE(to.findings[0].total(), to.engine.stack().counters().rx_bad_checksum);
  EXPECT_TRUE(from.findings.empty());
}

// Full packets begin to be lost at some moment, small ones do not: the transfer goes on, and the
// change is reported.
TEST_F(TurnTest, AShrinkingPathMtuIsReported) {
  run_for(3ms);
  ASSERT_FALSE(all_done());
  from.link.corrupts = [](Bytes& frame) {
    if (frame.size() > 1450) frame.back() ^= std::byte{1};
  };
  run_until([&] { return all_done(); });
  run_for(3s);
  ASSERT_FALSE(from.path_changes.empty());
  EXPECT_EQ(from.path_changes[0].remote, IpAddress(Ipv4Address{0x0a4d0102}));
  EXPECT_EQ(from.path_changes[0].before_bytes, 1500U);
  EXPECT_EQ(from.path_changes[0].now_bytes, 1400U);
  EXPECT_FALSE(senders[0]->failed || senders[1]->failed);
}

}  // namespace
}  // namespace ztcp::sim
