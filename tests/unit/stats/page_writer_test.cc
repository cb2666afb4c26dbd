// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_writer.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/stats/page_fixture.h"
#include "transport/stats/page_reader.h"

namespace ztcp::stats {
namespace {

std::uint32_t add_device(Page& page, const char* name) {
  DeviceRecord record{};
  record.carrier = static_cast<std::uint32_t>(Carrier::kKernelSockets);
  record.name.set(name);
  page.add_device(record);
  return page.device_named(name).value();
}

Snapshot read(const PageFolder& folder, const Page& page) {
  auto snapshot = read_page(folder.path() / page.file_name());
  EXPECT_TRUE(snapshot) << snapshot.error().where;
  return snapshot ? *snapshot : Snapshot{};
}

TEST(PageWriterTest, ReadersGetWhatWasPublished) {
  const PageFolder folder;
  const auto page = folder.create({.version = "0.1.0",
                                   .config_path = "/etc/ztcp/ztcp.conf",
                                   .config_hash = 77,
                                   .rank = 3,
                                   .ranks = 8,
                                   .local_rank = 1});
  const std::uint32_t device = add_device(*page, "ztcp0");
  LaneRow lane = page->take<LaneRecord>();
  LaneRecord lane_record{};
  lane_record.device = device;
  lane_record.counters[static_cast<std::size_t>(Counter::kRedials)] = 5;
  lane.publish(lane_record);
  ConnectionRow connection = page->take<ConnectionRecord>();
  ConnectionRecord record{};
  record.id = page->next_connection_id();
  record.device = device;
  record.way = static_cast<std::uint8_t>(Way::kReceive);
  record.waiting = static_cast<std::uint8_t>(Waiting::kPeerData);
  record.peer.set("10.0.0.2:4711");
  connection.publish(record);
  FlowRow flow = page->take<FlowRecord>();
  FlowRecord flow_record{};
  flow_record.connection = record.id;
  flow_record.rtt_ns = 25'000;
  flow.publish(flow_record);
  page->latencies(device, Way::kReceive, "10.0.0.2")->add(2, 1'000'000);

  const Snapshot snapshot = read(folder, *page);
  EXPECT_EQ(snapshot.process.version, "0.1.0");
  EXPECT_EQ(snapshot.process.config_path, "/etc/ztcp/ztcp.conf");
  EXPECT_EQ(snapshot.process.rank, 3);
  EXPECT_EQ(snapshot.process.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(snapshot.process.start_ticks, start_ticks_of(snapshot.process.pid));
  ASSERT_EQ(snapshot.devices.size(), 1U);
  EXPECT_EQ(snapshot.devices[0].name, "ztcp0");
  ASSERT_EQ(snapshot.lanes.size(), 1U);
  EXPECT_EQ(snapshot.lanes[0].counters[Counter::kRedials], 5U);
  ASSERT_EQ(snapshot.connections.size(), 1U);
  EXPECT_EQ(snapshot.connections[0].peer, "10.0.0.2:4711");
  EXPECT_EQ(snapshot.connections[0].waiting, Waiting::kPeerData);
  ASSERT_EQ(snapshot.flows.size(), 1U);
  EXPECT_EQ(snapshot.flows[0].rtt_ns, 25'000U);
  ASSERT_EQ(snapshot.latencies.size(), 1U);
  EXPECT_EQ(total(snapshot.latencies[0].by_class[2]), 1U);
}

TEST(PageWriterTest, ADeviceIsFoundByANameThatIsCut) {
  const PageFolder folder;
  const auto page = folder.create();
  EXPECT_EQ(add_device(*page, "mlx5_0+mlx5_1+mlx5_2+mlx5_3+mlx5_4"), 0U);
  EXPECT_FALSE(page->device_named("mlx5_0+mlx5_1"));
}

TEST(PageWriterTest, RowsAreGoneAfterTheirOwner) {
  const PageFolder folder;
  const auto page = folder.create();
  add_device(*page, "ztcp0");
  LaneRecord record{};
  {
    LaneRow lane = page->take<LaneRecord>();
    lane.publish(record);
    EXPECT_EQ(read(folder, *page).lanes.size(), 1U);
  }
  EXPECT_TRUE(read(folder, *page).lanes.empty());
  EXPECT_EQ(page->take<LaneRecord>().index(), 0U) << "the place is free again";
}

TEST(PageWriterTest, DevicesAreNumberedInOrderAndMayChange) {
  const PageFolder folder;
  const auto page = folder.create();
  EXPECT_EQ(add_device(*page, "ztcp0"), 0U);
  EXPECT_EQ(add_device(*page, "ztcp1"), 1U);
  EXPECT_FALSE(page->device_named("ztcp2"));
  page->update_device(1, [](DeviceRecord& record) { record.mtu_bytes = 9000; });
  page->update_device(2, [](DeviceRecord& record) { record.mtu_bytes = 1; });
  const Snapshot snapshot = read(folder, *page);
  ASSERT_EQ(snapshot.devices.size(), 2U);
  EXPECT_EQ(snapshot.devices[1].mtu_bytes, 9000U);
  EXPECT_EQ(snapshot.devices[1].name, "ztcp1");
}

TEST(PageWriterTest, CountsConnectionsBeyondItsRoom) {
  const PageFolder folder;
  const auto page = folder.create();
  std::vector<ConnectionRow> rows;
  for (std::size_t i = 0; i < kMaxConnections; ++i) {
    rows.push_back(page->take<ConnectionRecord>());
    ASSERT_TRUE(rows.back()) << i;
  }
  EXPECT_FALSE(page->take<ConnectionRecord>());
  EXPECT_EQ(read(folder, *page).process.connections_unlisted, 1U);
}

TEST(PageWriterTest, PeersBeyondTheTableShareOneEntryForEachWay) {
  const PageFolder folder;
  const auto page = folder.create();
  add_device(*page, "ztcp0");
  EXPECT_EQ(page->latencies(0, Way::kSend, "a"), page->latencies(0, Way::kSend, "a"));
  EXPECT_NE(page->latencies(0, Way::kSend, "a"), page->latencies(0, Way::kReceive, "a"));
  for (std::size_t i = 2; i < kMaxLatencies - 2; ++i)
    page->latencies(0, Way::kSend, std::to_string(i));
  EXPECT_EQ(page->latencies(0, Way::kSend, "x"), page->latencies(0, Way::kSend, "y"));
  EXPECT_NE(page->latencies(0, Way::kSend, "x"), page->latencies(0, Way::kReceive, "x"));
}

TEST(PageWriterTest, FileIsPrivateAndGoesWithThePage) {
  const PageFolder folder;
  auto page = folder.create();
  const auto file = folder.path() / page->file_name();
  struct stat facts {};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
  EXPECT_EQ(static_cast<std::size_t>(facts.st_size), kPageBytes);
  EXPECT_GE(static_cast<std::size_t>(facts.st_blocks) * 512, kPageBytes) << "it is not sparse";
  page.reset();
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(PageWriterTest, TwoPagesOfAProcessHaveDifferentNames) {
  const PageFolder folder;
  const auto one = folder.create();
  const auto two = folder.create();
  EXPECT_NE(one->file_name(), two->file_name());
  EXPECT_EQ(find_pages(folder.path())->size(), 2U);
}

TEST(PageWriterTest, ForkedChildLeavesThePageAlone) {
  const PageFolder folder;
  auto page = folder.create();
  add_device(*page, "ztcp0");
  LaneRow lane = page->take<LaneRecord>();
  LaneRecord record{};
  lane.publish(record);
  const pid_t child = ::fork();
  if (child == 0) {
    {
      const LaneRow dying = std::move(lane);
      page->end_cleanly();
    }
    page.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(folder, *page).lanes.size(), 1U);
}

TEST(PageWriterTest, FolderOfOthersIsRefused) {
  const PageFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  const auto page = Page::create(folder.path(), false, {});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Errc::kSystem);
  EXPECT_TRUE(Page::create(folder.path(), true, {})) << "run_dir's permissions decide";
}

TEST(PageWriterTest, FailsWithoutAFolder) {
  EXPECT_FALSE(Page::create("/proc/ztcp", false, {}));
  EXPECT_FALSE(Page::create("/nonexistent/run/stats", true, {}));
}

}  // namespace
}  // namespace ztcp::stats
