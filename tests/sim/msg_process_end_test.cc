// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A sender's process ends without notice (SIGKILL, _exit()): its completed messages arrive all the
// same. The streams are like the kernel's, which goes on to send the bytes it has taken, and drops
// them when anything arrives for the process that has ended.
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/support/msg_world.h"

namespace ztcp {
namespace {

using testing_support::MsgScript;
using testing_support::MsgWorld;

struct Traffic {
  const char* name;
  std::size_t most_bytes;  // The largest message.
  std::uint32_t tags;
  std::uint32_t flows;
  unsigned post_chance;
};

std::ostream& operator<<(std::ostream& out, const Traffic& traffic) { return out << traffic.name; }

class ProcessEnd : public testing::TestWithParam<std::tuple<Traffic, std::uint64_t>> {};

TEST_P(ProcessEnd, CompletedMessagesArriveAfterTheSenderIsKilled) {
  constexpr std::size_t kMessages = 100;
  const auto& [traffic, seed] = GetParam();
  MsgScript script;
  script.streams.seed = seed;
  script.streams.max_piece_bytes = seed % 2 == 0 ? 200 : 9000;
  script.set_ack_is_delivery(false);
  script.session.flows = traffic.flows;
  script.session.multi_flow_threshold_bytes = 16'384;
  script.post_chance = traffic.post_chance;
  std::mt19937_64 rng(seed);
  for (std::size_t i = 0; i < kMessages; ++i) {
    script.sizes.push_back(rng() % (traffic.most_bytes + 1));
    script.tags.push_back(static_cast<std::uint32_t>(rng() % traffic.tags));
  }
  for (std::size_t done = 1; done <= kMessages; done += 7) {
    MsgWorld world(script);
    ASSERT_TRUE(world.run_until([&] { return world.sender.done >= done; })) << world.problem();
    const std::size_t told = world.sender.done;
    world.end_sender_process();
    EXPECT_TRUE(world.run_until([&] { return world.has_received_all_sent(); }))
        << world.receiver.done << " arrived of " << told << " completed messages";
    EXPECT_EQ(world.problem(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ProcessEnd,
                         testing::Combine(testing::Values(Traffic{"small", 64, 1, 1, 4},
                                                          Traffic{"small_and_late_buffers", 64, 1,
                                                                  1, 40},
                                                          Traffic{"kept", 32'768, 1, 1, 4},
                                                          Traffic{"mixed", 50'000, 1, 1, 4},
                                                          Traffic{"tags", 2000, 3, 1, 4},
                                                          Traffic{"flows", 50'000, 2, 3, 4}),
                                          testing::Range<std::uint64_t>(1, 9)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param).name) + "_" +
                                  std::to_string(std::get<1>(row.param));
                         });

// In a steady run of small messages the sender knows that the receiver sends nothing, and need not
// ask for an acknowledgement.
TEST(ProcessEnd, FewSmallMessagesWaitForTheirAcknowledgement) {
  MsgScript script;
  script.set_ack_is_delivery(false);
  script.sizes.assign(2000, 8);
  script.send_chance = 0;
  MsgWorld world(script);
  std::size_t at_once = 0;
  for (std::size_t i = 0; i < script.sizes.size(); ++i) {
    ASSERT_TRUE(world.run_until([&] { return world.sender.ready != 0; }));
    const std::uint64_t told = world.net.deliveries_told();
    world.post_send();
    ASSERT_TRUE(world.run_until([&] { return world.sender.done == i + 1; })) << i;
    at_once += world.net.deliveries_told() == told ? 1 : 0;
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done == i + 1; })) << i;
  }
  EXPECT_GT(at_once, script.sizes.size() * 3 / 4);
}

// The receiver's application is late: whole messages wait for their buffers, also after the sender
// was given up.
TEST(ProcessEnd, ArrivedMessagesWaitForBuffersAfterTheSenderIsGone) {
  MsgScript script;
  script.set_ack_is_delivery(false);
  script.sizes.assign(11, 100);
  script.post_chance = 0;
  script.send_chance = 0;
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.sender.ready != 0; }));
  for (int i = 0; i < 10; ++i) world.post_send();
  ASSERT_TRUE(world.run_until([&] { return world.sender.done == 10; }));
  world.end_sender_process();
  world.run_until([] { return false; });
  EXPECT_EQ(world.receiver.failed, 0U);
  EXPECT_FALSE(world.recv_session->needs_peer());
  for (int i = 0; i < 10; ++i) world.post_receive();
  EXPECT_EQ(world.receiver.done, 10U);
  EXPECT_EQ(world.receiver.failed, 0U);
  world.post_receive();
  EXPECT_EQ(world.receiver.failed, 1U) << "the last message was never sent";
  EXPECT_EQ(world.problem(), "");
}

}  // namespace
}  // namespace ztcp
