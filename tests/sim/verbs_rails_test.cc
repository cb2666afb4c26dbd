// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails of unequal rates that fail at any moment, at either end, several at once, and rejoin: each
// message still arrives once, whole, in its buffer, and no byte of a buffer changes after its
// completion.
#include <memory>
#include <optional>
#include <tuple>

#include "tests/sim/rail_outages.h"
#include "tests/sim/verbs_traffic.h"

namespace ztcp::sim {
namespace {

const Shape kFailingShapes[] = {{"two", {0, 1}, {25, 400}},
                                {"two_of_two", {0, 0, 1, 1}},
                                {"three", {0, 1, 2}, {100, 10, 50}},
                                {"eight", {0, 1, 2, 3, 4, 5, 6, 7}},
                                {"rdma_and_tcp", {0, 1}, {100, 100}, {1}},
                                {"rdma_and_two_of_tcp", {0, 0, 1, 2}, {100, 100, 400}, {1, 2}},
                                {"tcp_alone", {0, 1}, {100, 100}, {0, 1}}};

Setup setup_of(const Shape& shape, std::uint64_t seed) {
  return {.rails = shape.rails,
          .rates_mbps = shape.rates_mbps,
          .seed = seed,
          .tcp_rails = shape.tcp_rails,
          .has_gpu_memory = shape.tcp_rails.empty(),
          .is_split = seed % 2 != 0};
}

class VerbsRails : public testing::TestWithParam<std::tuple<Shape, int>> {};

TEST_P(VerbsRails, RailsFailAndRejoinDuringTraffic) {
  const auto& [shape, seed] = GetParam();
  Traffic traffic(setup_of(shape, static_cast<std::uint64_t>(seed)), 600);
  std::unique_ptr<RailOutages> outages;
  const auto rails = shape.rails.back() + 1;
  traffic.before_event = [&](Connection& c) {
    if (!outages) outages = std::make_unique<RailOutages>(c);
    if (c.wire.draw() % 512 == 0)
      outages->fail(c.wire.draw() % 2 == 0, static_cast<std::uint32_t>(c.wire.draw() % rails));
    if (c.wire.draw() % 4 == 0) outages->step();
  };
  traffic.run();
  EXPECT_GT(outages->outages(), 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, VerbsRails,
                         testing::Combine(testing::ValuesIn(kFailingShapes), testing::Range(1, 9)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param).name) + "_seed_" +
                                  std::to_string(std::get<1>(one.param));
                         });

// `rail` fails before event `n`, detected by one end, and stays away. `late`: a rail that has not
// begun before.
int run_with_failure_before(const Setup& setup, int n, bool at_sender, std::uint32_t rail,
                            std::optional<std::uint32_t> late = {}) {
  Traffic traffic(setup, 16);
  std::unique_ptr<RailOutages> outages;
  int event = 0;
  traffic.before_event = [&](Connection& c) {
    if (!outages) {
      outages = std::make_unique<RailOutages>(c);
      for (const bool end : {true, false})
        if (late) outages->fail(end, *late);
    }
    if (event++ == n) outages->fail(at_sender, rail);
    // Rejoins come much later: the data in flight goes its way meanwhile.
    if (event > n + 200 && event % 16 == 0) outages->step();
  };
  traffic.run();
  return event;
}

void fail_before_every_event(const Setup& setup) {
  const int events = run_with_failure_before(setup, 1 << 30, true, 0);
  ASSERT_GT(events, 100);
  for (int n = 0; n < events; n += 2)
    for (const bool at_sender : {true, false})
      for (const std::uint32_t rail : {0U, 1U}) {
        SCOPED_TRACE(testing::Message() << n << " " << at_sender << " " << rail);
        run_with_failure_before(setup, n, at_sender, rail);
        if (testing::Test::HasFailure()) return;
      }
}

TEST(VerbsRailsTest, ARailMayFailBeforeAnyEvent) {
  fail_before_every_event({.rails = {0, 1}, .seed = 7});
}

TEST(VerbsRailsTest, OneOfTwoKindsMayFailBeforeAnyEvent) {
  fail_before_every_event({.rails = {0, 1}, .seed = 7, .tcp_rails = {1}, .has_gpu_memory = false});
}

// For a while no rail serves.
TEST(VerbsRailsTest, TheRdmaRailMayFailBeforeTheTcpRailHasBegun) {
  for (int n = 0; n < 200; n += 2)
    for (const bool at_sender : {true, false}) {
      SCOPED_TRACE(testing::Message() << n << " " << at_sender);
      run_with_failure_before(
          {.rails = {0, 1}, .seed = 7, .tcp_rails = {1}, .has_gpu_memory = false}, n, at_sender, 0,
          1);
      if (testing::Test::HasFailure()) return;
    }
}

// Shows the purpose of fencing, and that these tests detect its absence.
TEST(VerbsRailsTest, WithoutFencingCompletedBuffersAreWritten) {
  int harmed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Connection c({.rails = {0, 1}, .seed = seed});
    RailOutages careless(c, true);
    Bytes to(100'000);
    const Bytes from(100'000, std::byte{1});
    const verbs::RecvSession::Buffer buffer{reinterpret_cast<std::uint64_t>(to.data()),
                                            &kPayloadKeys, 100'000, 0};
    c.wire.right.memory.push_back({to.data(), to.size(), kPayloadKeys});
    ASSERT_TRUE(c.receiver->post({&buffer, 1}));
    while (!*c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys})) c.wire.step();
    careless.fail(true, 1);
    for (int i = 0; i < 1000 && !c.receiver->is_done(0); ++i) {
      c.wire.step();
      (void)c.poll_both();  // It finds out, too late.
    }
    if (!c.receiver->is_done(0)) continue;
    c.wire.right.on_write = [&](const std::byte*, std::size_t) { ++harmed; };
    while (c.wire.step()) {
    }
  }
  EXPECT_GT(harmed, 0);
}

// From then on GPU memory is refused with an error that says so; host memory goes on.
TEST(VerbsRailsTest, GpuMemoryFailsWithoutAnRdmaRail) {
  for (const bool is_senders : {true, false}) {
    Connection c({.rails = {0, 1}, .tcp_rails = {1}});
    RailOutages outages(c);
    Bytes to(100'000);
    const Bytes from(100'000, std::byte{1});
    const auto post = [&](std::uint32_t flags) {
      const verbs::RecvSession::Buffer buffer{reinterpret_cast<std::uint64_t>(to.data()),
                                              &kPayloadKeys, 100'000, 0, flags};
      ASSERT_TRUE(c.receiver->post({&buffer, 1}));
    };
    for (const bool at_sender : {true, false}) outages.fail(at_sender, 0);
    post(verbs::Slot::kHost);
    while (!*c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys})) ASSERT_TRUE(c.poll_both());
    while (!c.receiver->is_done(0) || !c.sender->is_done(0)) ASSERT_TRUE(c.poll_both());
    EXPECT_EQ(to, from);
    post(is_senders ? verbs::Slot::kHost : 0);
    Result<bool> sent = false;
    while (sent && !*sent) {
      ASSERT_TRUE(c.poll_both());
      sent = c.sender->post(1, {.bytes = from, .lkeys = &kLocalKeys, .is_host = !is_senders});
    }
    ASSERT_FALSE(sent);
    EXPECT_STREQ(sent.error().where, verbs::kOnlyTcpIsLeft);
  }
}

TEST(VerbsRailsTest, MessagesWaitWhileThereIsNoRail) {
  Connection c({.rails = {0, 1}});
  RailOutages outages(c);
  for (const std::uint32_t rail : {0U, 1U})
    for (const bool at_sender : {true, false}) outages.fail(at_sender, rail);
  EXPECT_FALSE(c.receiver->can_post());
  const Bytes from(8);
  EXPECT_FALSE(*c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys}));
}

}  // namespace
}  // namespace ztcp::sim
