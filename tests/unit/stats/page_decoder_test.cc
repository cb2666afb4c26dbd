// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_decoder.h"

#include <cstring>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

DeviceRecord valid_device() {
  DeviceRecord record{};
  record.used = 1;
  record.carrier = static_cast<std::uint32_t>(Carrier::kRdma);
  record.name.set("ztcp0");
  return record;
}

class PageDecoderTest : public testing::Test {
 protected:
  PageDecoderTest() {
    Header& header = page_->header;
    header.magic = kMagic;
    header.layout_version = kLayoutVersion;
    header.page_bytes = kPageBytes;
    header.counter_names = counter_names_hash();
    page_->devices[0].write(valid_device());
  }
  Decoded decode(bool takes_torn = false) {
    return decode_page({page_.get(), page_.get(), page_.get()}, takes_torn);
  }
  Status check(std::size_t size = kPageBytes) {
    return check_header({reinterpret_cast<const std::byte*>(page_.get()), size});
  }
  std::unique_ptr<PageContent> page_ = std::make_unique<PageContent>();
};

TEST_F(PageDecoderTest, HeaderOfAnotherFormatIsRefused) {
  EXPECT_TRUE(check());
  EXPECT_FALSE(check(0));
  EXPECT_FALSE(check(sizeof(Header) - 1));
  page_->header.counter_names ^= 1;
  EXPECT_FALSE(check());
  page_->header.counter_names ^= 1;
  page_->header.layout_version = kLayoutVersion + 1;
  EXPECT_FALSE(check());
  page_->header.layout_version = kLayoutVersion;
  page_->header.page_bytes = 7;
  EXPECT_FALSE(check());
  page_->header.magic = 0;
  EXPECT_STREQ(check().error().where, "not a statistics page of ztcp");
}

TEST_F(PageDecoderTest, EntriesWithAnUnknownEnumAreLeftOut) {
  DeviceRecord device = valid_device();
  device.carrier = 9;
  page_->devices[1].write(device);
  ConnectionRecord connection{};
  connection.used = 1;
  connection.waiting = 200;
  page_->connections[0].write(connection);
  connection.waiting = 0;
  connection.way = 2;
  page_->connections[1].write(connection);
  const Snapshot snapshot = decode().snapshot;
  EXPECT_EQ(snapshot.devices.size(), 1U);
  EXPECT_TRUE(snapshot.connections.empty());
}

TEST_F(PageDecoderTest, EntriesOfUnknownDevicesAreLeftOut) {
  for (const std::uint32_t device : {1U, 64U, 0xffffffffU}) {
    LaneRecord lane{};
    lane.used = 1;
    lane.device = device;
    page_->lanes[0].write(lane);
    ConnectionRecord connection{};
    connection.used = 1;
    connection.device = device;
    page_->connections[0].write(connection);
    LatencyRecord latency{};
    latency.used = 1;
    latency.device = device;
    page_->latencies[0].record.write(latency);
    const Snapshot snapshot = decode().snapshot;
    EXPECT_TRUE(snapshot.lanes.empty());
    EXPECT_TRUE(snapshot.connections.empty());
    EXPECT_TRUE(snapshot.latencies.empty());
  }
}

TEST_F(PageDecoderTest, FlowsWithoutAConnectionAreLeftOut) {
  FlowRecord flow{};
  flow.used = 1;
  flow.connection = 4;
  page_->flows[0].write(flow);
  EXPECT_TRUE(decode().snapshot.flows.empty());
  ConnectionRecord connection{};
  connection.used = 1;
  connection.id = 4;
  page_->connections[9].write(connection);
  page_->connections[10].write(connection);
  EXPECT_EQ(decode().snapshot.flows.size(), 1U);
  EXPECT_EQ(decode().snapshot.connections.size(), 1U) << "an id is that of one connection";
}

TEST_F(PageDecoderTest, TextsEndInsideTheirRoomAndAreAscii) {
  DeviceRecord device = valid_device();
  device.name.chars.fill('n');
  device.plan.set("a\x1b[2Jb\xc3\xa4\n");
  page_->devices[0].write(device);
  const Snapshot snapshot = decode().snapshot;
  EXPECT_EQ(snapshot.devices[0].name, std::string(32, 'n'));
  EXPECT_EQ(snapshot.devices[0].plan, "a?[2Jb???");
}

TEST_F(PageDecoderTest, EntryThatChangesBetweenTheCopiesIsTorn) {
  const auto later = std::make_unique<PageContent>(*page_);
  later->devices[0].write(valid_device());
  const Decoded running = decode_page({page_.get(), page_.get(), later.get()}, false);
  EXPECT_EQ(running.torn, 1U);
  EXPECT_TRUE(running.snapshot.devices.empty());
}

TEST_F(PageDecoderTest, EntryThatADeadOwnerWasWritingIsTaken) {
  page_->devices[0].sequence += 1;
  EXPECT_EQ(decode().torn, 1U);
  EXPECT_EQ(decode(true).snapshot.devices.size(), 1U);
}

TEST_F(PageDecoderTest, NegativeNumbersOfRanksAreUnknown) {
  page_->header.rank = -7;
  page_->header.ranks = -7;
  EXPECT_EQ(decode().snapshot.process.rank, -1);
  EXPECT_EQ(decode().snapshot.process.ranks, 0);
}

}  // namespace
}  // namespace ztcp::stats
