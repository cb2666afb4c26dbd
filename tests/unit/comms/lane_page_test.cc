// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/lane_page.h"

#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "tests/unit/comms/counting_backend.h"
#include "tests/unit/stats/page_fixture.h"
#include "transport/stats/page_reader.h"

namespace ztcp::comms {
namespace {

constexpr TimePoint kFirstRefresh{std::chrono::seconds(5)};

class Refreshed final : public Client {
 public:
  explicit Refreshed(int& count) : count_(count) {}
  void on_doorbell(TimePoint) override {}
  void on_link_lost(TimePoint) override {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}
  void refresh_page(TimePoint) override { ++count_; }

 private:
  int& count_;
};

class LanePageTest : public testing::Test {
 protected:
  LanePageTest() : page_(folder_.create()) {
    stats::DeviceRecord device{};
    device.carrier = static_cast<std::uint32_t>(stats::Carrier::kUserspaceTcp);
    device.name.set("ztcp0");
    page_->add_device(device);
  }
  stats::PageFolder folder_;
  std::shared_ptr<stats::Page> page_;
  LateTurns late_turns_;
  int starts_ = 0;
  CountingBackend backend_{starts_};
};

TEST_F(LanePageTest, ListsTheLaneTwiceASecond) {
  LanePage lane(lane_place(page_, "ztcp0", 3));
  ASSERT_TRUE(lane.is_due(kFirstRefresh));
  late_turns_.expect(kFirstRefresh);
  late_turns_.on_turn(kFirstRefresh + std::chrono::milliseconds(7));
  lane.refresh(kFirstRefresh, backend_, late_turns_, 5);
  EXPECT_FALSE(lane.is_due(kFirstRefresh + LanePage::kInterval - Duration(1)));
  EXPECT_TRUE(lane.is_due(kFirstRefresh + LanePage::kInterval));
  const auto snapshot = stats::read_page(folder_.path() / page_->file_name());
  ASSERT_TRUE(snapshot);
  ASSERT_EQ(snapshot->lanes.size(), 1U);
  EXPECT_EQ(snapshot->lanes[0].number, 3U);
  EXPECT_EQ(snapshot->lanes[0].queue_depth, 5U);
  EXPECT_EQ(snapshot->lanes[0].counters[stats::Counter::kLateTurns], 1U);
  EXPECT_EQ(snapshot->lanes[0].counters[stats::Counter::kLateTurnTime], 7'000'000U);
  EXPECT_EQ(snapshot->devices[0].link, stats::LinkStatus::kUp);
}

TEST_F(LanePageTest, CountsTheWaitsOfItsConnections) {
  const LanePlace place = lane_place(page_, "ztcp0", 0);
  LanePage lane(place);
  *place.waits = {.zero_windows = 1, .zero_window_ns = 2, .credit_stalls = 3, .credit_stall_ns = 4};
  lane.refresh(kFirstRefresh, backend_, late_turns_, 0);
  const auto snapshot = stats::read_page(folder_.path() / page_->file_name());
  ASSERT_TRUE(snapshot);
  const stats::CounterValues& counters = snapshot->lanes.at(0).counters;
  EXPECT_EQ(counters[stats::Counter::kZeroWindows], 1U);
  EXPECT_EQ(counters[stats::Counter::kZeroWindowTime], 2U);
  EXPECT_EQ(counters[stats::Counter::kCreditStalls], 3U);
  EXPECT_EQ(counters[stats::Counter::kCreditStallTime], 4U);
}

TEST_F(LanePageTest, RefreshesFewConnectionsInATurnAndAllInARound) {
  int refreshed = 0;
  constexpr int kClients = 70;
  for (int i = 0; i < kClients; ++i)
    ASSERT_TRUE(backend_.clients().attach(std::make_unique<Refreshed>(refreshed)));
  LanePage lane(lane_place(page_, "ztcp0", 0));
  int turns = 0;
  for (; lane.is_due(kFirstRefresh); ++turns) {
    const int before = refreshed;
    lane.refresh(kFirstRefresh, backend_, late_turns_, 0);
    EXPECT_LE(refreshed - before, static_cast<int>(LanePage::kClientsPerTurn));
  }
  EXPECT_EQ(turns, 3);
  EXPECT_EQ(refreshed, kClients);
}

TEST_F(LanePageTest, IsNeverDueWithoutAPage) {
  EXPECT_FALSE(LanePage(lane_place(nullptr, "ztcp0", 0)).is_due(kFirstRefresh));
  EXPECT_FALSE(LanePage(lane_place(page_, "ztcp7", 0)).is_due(kFirstRefresh)) << "no such device";
}

}  // namespace
}  // namespace ztcp::comms
