// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A receiver that has lost all flows probes the port at which its sender's process listens.
#include <chrono>
#include <deque>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"

namespace ztcp::msg {
namespace {

using namespace std::chrono_literals;

class SenderProbeTest : public AcceptorTest, public StreamSource {
 protected:
  struct Dialled {
    Endpoint remote;
    StreamEvents* events = nullptr;
    bool peer_shares_nic = false;
    RecordingStream stream;
  };

  void SetUp() override {
    AcceptorTest::SetUp();
    acceptor->dial_by(*this);
  }
  Result<Stream*> dial(TimePoint, Endpoint remote, StreamEvents& events,
                       const DialSettings& with) override {
    Dialled& d = dialled.emplace_back();
    d.remote = remote;
    d.events = &events;
    d.peer_shares_nic = with.peer_shares_nic;
    return &d.stream;
  }
  bool has_spare_stream() const override { return has_spare; }
  Endpoint listening() const override { return {}; }

  static Hello listening_hello(std::uint32_t epoch = 1) {
    Hello h = hello(5, epoch);
    h.listening = kSender;
    return h;
  }
  // A session with a posted buffer; its only flow dies.
  void lose(const Hello& h, Errc why = Errc::kPeerClosed) {
    Peer& peer = greet(h);
    post(buffer, 1);
    peer.events->on_failed(now, Error{why, 0, "killed"});
    acceptor->on_timers(now);
  }
  void pass(Duration time) {
    now += time;
    acceptor->on_timers(now);
  }
  // Advances to the next dial, if one comes within `time`.
  bool dials_within(Duration time) {
    const std::size_t before = dialled.size();
    for (const TimePoint end = now + time; dialled.size() == before && now < end;) pass(10ms);
    return dialled.size() > before;
  }
  void answer(Errc outcome) { dialled.back().events->on_failed(now, Error{outcome, 0, "connect"}); }

  static constexpr Endpoint kSender{Ipv4Address{0x0a000002}, 7471};
  std::array<std::byte, 8> buffer{};
  std::deque<Dialled> dialled;
  bool has_spare = true;
};

TEST_F(SenderProbeTest, AProcessWithoutItsListenerHasEnded) {
  lose(listening_hello());
  ASSERT_EQ(dialled.size(), 1U) << "it asks at once";
  EXPECT_EQ(dialled[0].remote, kSender);
  EXPECT_FALSE(dialled[0].peer_shares_nic);
  const TimePoint since = now;
  answer(Errc::kRefused);
  EXPECT_TRUE(failures.empty()) << "a firewall may be starting";
  while (failures.empty() && dials_within(1s)) answer(Errc::kRefused);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kRefused);
  EXPECT_GE(now - since, 500ms);
  EXPECT_LE(now - since, 700ms);
  EXPECT_FALSE(dials_within(20s));
}

// Only some ports lead to a sender that shares its NIC: a refusal of the first one proves nothing.
TEST_F(SenderProbeTest, ASenderThatSharesItsNicIsDialledAccordingly) {
  Hello sharing = listening_hello();
  sharing.shares_nic = true;
  lose(sharing);
  EXPECT_TRUE(dialled.at(0).peer_shares_nic);
}

TEST_F(SenderProbeTest, ALivingProcessMayRedialForTheWholeWait) {
  lose(listening_hello());
  const TimePoint since = now;
  while (failures.empty()) {
    dialled.back().events->on_open(now, dialled.back().stream);
    EXPECT_TRUE(dialled.back().stream.aborted);
    EXPECT_TRUE(dialled.back().stream.written.empty()) << "nothing is said there";
    EXPECT_FALSE(dials_within(900ms)) << "it was answered";
    ASSERT_TRUE(dials_within(200ms) || !failures.empty());
  }
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
  EXPECT_GE(now - since, settings.redial_window);
}

TEST_F(SenderProbeTest, OnlyConsecutiveRefusalsCount) {
  lose(listening_hello());
  const auto refuse_for = [&](Duration time) {
    for (const TimePoint end = now + time; now < end;) {
      answer(Errc::kRefused);
      ASSERT_TRUE(dials_within(200ms));
    }
  };
  refuse_for(400ms);
  ASSERT_TRUE(dials_within(settings.redial_attempt + 20ms)) << "no answer is none";
  EXPECT_TRUE(dialled[dialled.size() - 2].stream.aborted);
  refuse_for(400ms);
  answer(Errc::kNoRoute);
  ASSERT_TRUE(dials_within(1100ms));
  refuse_for(400ms);
  EXPECT_TRUE(failures.empty());
}

TEST_F(SenderProbeTest, AResumeEndsTheProbe) {
  lose(listening_hello());
  ASSERT_EQ(dialled.size(), 1U);
  EXPECT_TRUE(accept_of(greet(listening_hello(2))));
  EXPECT_TRUE(dialled[0].stream.aborted);
  EXPECT_FALSE(dials_within(20s));
  EXPECT_TRUE(failures.empty());
}

TEST_F(SenderProbeTest, ClosingEndsTheProbe) {
  lose(listening_hello());
  sessions[0]->close();
  EXPECT_TRUE(dialled[0].stream.aborted);
  sessions.clear();
  EXPECT_FALSE(dials_within(20s));
}

// Address translation may put another host's address there; its ports are not the sender's.
TEST_F(SenderProbeTest, AnAddressOtherThanTheFlowsIsNotProbed) {
  Hello elsewhere = listening_hello();
  elsewhere.listening.address = Ipv4Address{0x0a000003};
  lose(elsewhere);
  EXPECT_FALSE(dials_within(1s));
}

TEST_F(SenderProbeTest, ASenderWithoutAListenerIsNotProbed) {
  lose(hello());
  EXPECT_FALSE(dials_within(1s));
}

TEST_F(SenderProbeTest, ProbesOnlyWhenNoFlowIsLeft) {
  Peer& first = greet(listening_hello());
  Hello second = hello(5, 1, 1);
  second.listening = kSender;
  greet(second);
  post(buffer, 1);
  first.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  EXPECT_FALSE(dials_within(1s));
}

TEST_F(SenderProbeTest, TakesNoStreamFromSessionsToCome) {
  has_spare = false;
  lose(listening_hello());
  EXPECT_FALSE(dials_within(3s));
  has_spare = true;
  EXPECT_TRUE(dials_within(1100ms));
}

}  // namespace
}  // namespace ztcp::msg
