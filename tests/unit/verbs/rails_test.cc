// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Merged devices with rails that fail in the middle of messages, and come back: whole connections
// over devices in memory, joined over loopback by the real control threads.
#include "tests/unit/verbs/device_profiles.h"
#include "tests/unit/verbs/rails_fixture.h"

namespace ztcp::verbs {
namespace {

using test::FakeCounts;
using testing::HasSubstr;
using testing::Not;

class RailsTest : public RailsFixture, public testing::WithParamInterface<Profile> {
 protected:
  // The sender's devices are fake0 and fake1, the receiver's fake2 and fake3.
  RailsTest()
      : RailsFixture({merged(nic_on("fake0"), "from"), merged(nic_on("fake1"), "from"),
                      merged(nic_on("fake2"), "to"), merged(nic_on("fake3"), "to")},
                     {device_of(GetParam(), "fake0", 1), device_of(GetParam(), "fake1", 2),
                      device_of(GetParam(), "fake2", 3), device_of(GetParam(), "fake3", 4)}) {}
};
INSTANTIATE_TEST_SUITE_P(Of, RailsTest, mergeable_profiles(), name_of_row);

TEST_P(RailsTest, APortOfTheSendersMayGoDownAndComeBack) {
  carry(20);
  host_.devices.set_port_state("fake1", 1, IBV_PORT_DOWN);
  carry_until([this] { return has_said("the rail over fake1 port 1 has failed"); });
  carry(50);
  host_.devices.set_port_state("fake1", 1, IBV_PORT_ACTIVE);
  carry_until([this] { return has_said("the rail over fake1 port 1 to 127.0.0.1:"); });
  carry(50);
}

TEST_P(RailsTest, APortOfTheReceiversMay) {
  carry(20);
  host_.devices.set_port_state("fake2", 1, IBV_PORT_DOWN);
  carry_until([this] { return has_said("the rail over fake2 port 1 has failed"); });
  carry(50);
  host_.devices.set_port_state("fake2", 1, IBV_PORT_ACTIVE);
  carry_until([this] { return has_said("is back"); });
  carry(50);
}

TEST_P(RailsTest, BytesOfEachRailAreLoggedAtTheEnd) {
  carry(20);
  ASSERT_TRUE(pair_.sender->deregister_memory(from_key_));
  ASSERT_TRUE(pair_.receiver->deregister_memory(to_key_));
  pair_ = {};
  using testing::Contains;
  using testing::MatchesRegex;
  EXPECT_THAT(log_.infos(),
              Contains(MatchesRegex("from: no connection is left; so far it sent [0-9]+ messages "
                                    "\\([1-9][0-9]+ bytes\\), received 0 messages \\(0 bytes\\); "
                                    "fake0 port 1 sent [1-9][0-9]+ bytes, received 0; "
                                    "fake1 port 1 sent [1-9][0-9]+ bytes, received 0")));
  EXPECT_THAT(log_.infos(),
              Contains(MatchesRegex("to: no connection is left; so far it sent 0 messages .*; "
                                    "fake2 port 1 sent 0 bytes, received [1-9][0-9]+; "
                                    "fake3 port 1 sent 0 bytes, received [1-9][0-9]+")));
  // For the fixture, which closes one.
  pair_ = test::connect(*transport_, *transport_, 1);
  from_key_ = key_of(*pair_.sender, from_);
  to_key_ = key_of(*pair_.receiver, to_);
}

// Nobody is told by an event: a completion says so.
TEST_P(RailsTest, AQueuePairThatFailsTakesItsRailAlone) {
  for (int n = 1; n < 4; ++n) {
    carry(10);
    host_.devices.fail_next_message(IBV_WC_RETRY_EXC_ERR);
    carry_until([&] { return has_said("is back", 2 * n); });
  }
  // Whichever tells first of it.
  const auto by_completion = HasSubstr("the peer's NIC did not answer (status 12");
  if (device_of(GetParam(), "", 1).tells_of_pairs) {
    EXPECT_THAT(log_.warned(),
                testing::AnyOf(by_completion, HasSubstr("local work queue catastrophic error")));
  } else {
    EXPECT_THAT(log_.warned(), by_completion);
  }
}

TEST_P(RailsTest, ADeviceThatIsLostTakesItsRailAlone) {
  carry(10);
  host_.devices.raise("fake3", IBV_EVENT_DEVICE_FATAL);
  carry_until([this] { return has_said("the rail over fake3 port 1 has failed"); });
  carry(50);
}

// bnxt_re, irdma, hns and mlx5 tell of a queue pair that has failed by an event of its own; the
// library destroys it only once that is acknowledged.
TEST_P(RailsTest, AQueuePairThatTellsOfItsFailureTakesItsRailAlone) {
  carry(10);
  host_.devices.raise_of_pair(host_.devices.pairs_of("fake1").at(0), IBV_EVENT_QP_FATAL);
  carry_until([this] { return has_said("the rail over fake1 port 1 has failed"); });
  carry(50);
}

TEST_P(RailsTest, ACompletionQueueThatTellsOfItsFailureTakesItsRailAlone) {
  carry(10);
  host_.devices.raise_of_pair(host_.devices.pairs_of("fake1").at(0), IBV_EVENT_CQ_ERR);
  carry_until([this] { return has_said("the rail over fake1 port 1 has failed"); });
  carry(50);
}

// Nothing is flushed then: libmlx5 has no completions of its own for a device that has failed.
TEST_P(RailsTest, ADeadDeviceOfTheReceiversTakesItsRailAlone) {
  carry(10);
  host_.devices.kill("fake3");
  carry_until([this] { return has_said("the rail over fake3 port 1 has failed"); });
  carry(200);
  EXPECT_THAT(log_.warned(), Not(HasSubstr(" failed: ")));
}

TEST_P(RailsTest, ADeadDeviceOfTheSendersTakesItsRailAlone) {
  carry(10);
  host_.devices.kill("fake1");
  carry_until([this] { return has_said("the rail over fake1 port 1 has failed"); });
  carry(200);
}

// The peer's NIC finds it out.
TEST_P(RailsTest, ADeadDeviceThatTellsNothingTakesItsRailAlone) {
  carry(10);
  host_.devices.kill("fake3", /*tells=*/false);
  carry_until([this] { return has_said("the rail over fake3 port 1 has failed"); });
  carry(200);
}

TEST_P(RailsTest, MemoryIsRegisteredBesideADeadDevice) {
  carry(10);
  host_.devices.kill("fake1");
  carry_until([this] { return has_said("the rail over fake1 port 1 has failed"); });
  Bytes more(kSize);
  MemoryKey* const key = key_of(*pair_.sender, more);
  EXPECT_TRUE(pair_.sender->deregister_memory(key));
}

TEST_P(RailsTest, ARegistrationFindsADeadDeviceOut) {
  carry(10);
  host_.devices.kill("fake1", /*tells=*/false);
  Bytes more(kSize);
  MemoryKey* const key = key_of(*pair_.sender, more);
  carry_until([this] { return has_said("fake1 takes no command any more"); });
  carry(50);
  EXPECT_TRUE(pair_.sender->deregister_memory(key));
}

TEST_P(RailsTest, ConnectionsAreMadeBesideADeadDevice) {
  carry(10);
  host_.devices.kill("fake1", /*tells=*/false);
  host_.devices.kill("fake2");
  carry_until([this] { return has_said("the rail over fake2 port 1 has failed"); });
  // The sender has its first, the receiver its second alone: they have none in common.
  auto listener = std::move(*transport_->listen(1, {}));
  auto none = std::move(*transport_->begin_connect(0, listener->handle(), {}));
  Result<bool> ready = false;
  while (ready && !*ready) ready = none->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_THAT(log_.warned(), HasSubstr("no rail in common"));
}

TEST_P(RailsTest, AConnectionMadeBesideADeadDeviceServes) {
  carry(10);
  host_.devices.kill("fake0");
  host_.devices.kill("fake2", /*tells=*/false);
  carry_until([this] { return has_said("the rail over fake0 port 1 has failed"); });
  over(test::connect(*transport_, *transport_, 1), [this] { carry(50); });
}

// The NIC would wait for its ack_timeout, time and again.
TEST_P(RailsTest, AConnectionMadeWhileAPortIsDownDoesNotSendOverIt) {
  carry(10);
  std::ptrdiff_t backs = 0;
  for (const char* const device : {"fake1", "fake2"}) {
    host_.devices.set_port_state(device, 1, IBV_PORT_DOWN);
    carry_until([&] { return has_said("the rail over " + std::string(device) + " port 1"); });
    over(test::connect(*transport_, *transport_, 1), [&] {
      const FakeCounts before = host_.devices.counts(device);
      carry(50);
      EXPECT_LT(host_.devices.counts(device).works, before.works + 10);
      host_.devices.set_port_state(device, 1, IBV_PORT_ACTIVE);
      carry_until([&] { return host_.devices.counts(device).works > before.works + 50; });
    });
    carry_until([&] { return has_said("is back", backs += 2); });
  }
}

// erdma's says -EIO of a queue pair in the error state.
TEST_P(RailsTest, AQueuePairThatTakesNoWorkTakesItsRailAlone) {
  carry(10);
  host_.devices.refuse("ibv_post_send fake1", -EIO);
  carry_until([this] { return has_said("the rail over fake1 port 1 has failed"); });
  EXPECT_THAT(log_.warned(), HasSubstr("ibv_post_send: Input/output error"));
  carry(50);
  host_.devices.refuse("ibv_post_send fake1", 0);
  carry_until([this] { return has_said("is back", 2); });
  host_.devices.refuse("ibv_post_send fake2", -EIO);  // The receiver's slots.
  carry_until([this] { return has_said("the rail over fake2 port 1 has failed"); });
  host_.devices.refuse("ibv_post_send fake2", 0);
  carry(5);
}

TEST_P(RailsTest, FailureOfNoRailEndsTheConnection) {
  carry(5);
  host_.devices.fail_next_message(IBV_WC_REM_ACCESS_ERR);
  bool has_failed = false;
  for (std::size_t n = 0; n < 1'000'000 && !has_failed; ++n) {
    if (receives_.size() < kInFlight) {
      const auto receive = test::post_recv(*pair_.receiver, place(to_, posted_), to_key_);
      if (receive && *receive != nullptr) {
        receives_.push_back(*receive);
        ++posted_;
      }
    }
    const auto send = pair_.sender->post_send(place(from_, sent_), 0, from_key_);
    has_failed = !send;
    if (send && *send != nullptr) {
      ++sent_;
      (void)(*send)->test({});
    }
  }
  EXPECT_TRUE(has_failed);
}

TEST_P(RailsTest, WithoutAnyRailTheConnectionEnds) {
  carry(10);
  host_.devices.set_port_state("fake0", 1, IBV_PORT_DOWN);
  carry_until([this] { return has_said("the rail over fake0 port 1 has failed"); });
  host_.devices.set_port_state("fake1", 1, IBV_PORT_DOWN);
  Result<Request*> send = nullptr;
  std::deque<Request*> more = sends_;
  for (bool is_over = false; !is_over;) {
    if (more.empty()) {
      (void)test::post_recv(*pair_.receiver, place(to_, posted_), to_key_);
      send = pair_.sender->post_send(place(from_, sent_), 0, from_key_);
      is_over = !send;
      if (send && *send != nullptr) more.push_back(*send);
      continue;
    }
    const auto done = more.front()->test({});
    is_over = !done;
    if (done && *done) more.pop_front();
    if (!receives_.empty()) {
      const auto received = receives_.front()->test({});
      is_over = is_over || !received;
      if (received && *received) receives_.pop_front();
    }
  }
  EXPECT_THAT(log_.warned(), HasSubstr("port 1 failed: "));
}

}  // namespace
}  // namespace ztcp::verbs
