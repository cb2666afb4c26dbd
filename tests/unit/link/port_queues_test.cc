// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The queues of one port: links that share it, and end with it.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/peer.h"
#include "tests/unit/link/port_fixture.h"
#include "transport/link/port_link.h"

// Functions that DPDK's drivers call.
extern "C" {
rte_eth_dev* rte_eth_dev_allocated(const char* name);
int rte_eth_dev_callback_process(rte_eth_dev* device, rte_eth_event_type event, void* parameter);
}

namespace ztcp::link {
namespace {

using test::flatten;
using test::SentFrame;
using test::within_seconds;

// The ring driver delivers frames on the queue they were sent on.
class QueuesOfAPort : public PortLinkTest {
 protected:
  void SetUp() override {
    PortConfig config = this->config();
    config.queues = 3;
    open(config);
    ASSERT_EQ(others_.size(), 2U);
  }
  PortLink& queue(std::size_t i) { return i == 0 ? *link_ : *others_[i - 1]; }
};

TEST_F(QueuesOfAPort, EachCarriesItsOwnFrames) {
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(queue(i).capabilities().shard, i);
    EXPECT_EQ(queue(i).capabilities().shards, 3);
    EXPECT_EQ(queue(i).capabilities().spread, nullptr) << "the driver tells nothing";
    EXPECT_TRUE(queue(i).is_up());
  }
  std::array<std::vector<std::byte>, 3> sent;
  for (std::uint32_t i = 0; i < 3; ++i) {
    SentFrame frame(i, 300, 1);
    sent[i] = frame.bytes();
    ASSERT_EQ(queue(i).transmit({&frame.frame(), 1}), 1U);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    std::array<RxFrame, 2> frames;
    ASSERT_EQ(queue(i).receive(frames), 1U);
    EXPECT_EQ(flatten(frames[0]), sent[i]);
    queue(i).release(std::span(frames).first(1));
    EXPECT_EQ(queue(i).counters().rx_frames, 1U);
  }
}

// The kernel waits until the device is unused; a queue that has not left may still use it.
TEST_F(QueuesOfAPort, TheLastOneReleasesALostNic) {
  std::array<std::byte, 4096> user{};
  const std::uint32_t key = queue(1).map_memory(user.data(), user.size());
  ASSERT_NE(key, kUnmapped);
  rte_dev_event_callback_process(kDevice, RTE_DEV_EVENT_REMOVE);
  std::array<RxFrame, 4> none;
  const auto look = [&](std::size_t i) {
    queue(i).release(std::span(none).first(queue(i).receive(none)));
  };
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(queue(i).state(), LinkState::kGone);
  SentFrame frame(1, 128, 0);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_TRUE(within_seconds(30, [&] {
      look(i);
      // Nothing is sent any more after it has detected that.
      return queue(i).transmit({&frame.frame(), 1}) == 1 && queue(i).counters().tx_dropped != 0;
    }));
  }
  queue(1).unmap_memory(key);
  EXPECT_EQ(memory_.ranges(), 1U) << "the device may still read it";
  EXPECT_TRUE(port_exists());
  EXPECT_TRUE(within_seconds(30, [&] {
    look(2);
    return !port_exists();
  }));
  EXPECT_TRUE(within_seconds(30, [&] {
    look(1);
    return memory_.ranges() == 0;
  }));
}

// A poller that ends takes neither the port from the others nor memory from the device.
TEST_F(QueuesOfAPort, ThePortEndsWithTheLast) {
  link_.reset();
  EXPECT_TRUE(port_exists());
  SentFrame frame(1, 300, 1);
  ASSERT_EQ(queue(2).transmit({&frame.frame(), 1}), 1U);
  std::array<RxFrame, 1> got;
  ASSERT_EQ(queue(2).receive(got), 1U);
  queue(2).release(got);
  others_.clear();
  EXPECT_FALSE(port_exists());
}

TEST_F(QueuesOfAPort, MoreThanTheDeviceHasIsRefusedByName) {
  close();
  const ztcp::test::LogCapture log;
  PortConfig config = this->config();
  config.queues = 100;
  const auto port = Port::open(config);
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, Errc::kBadConfig);
  EXPECT_NE(log.warned().find("has 16 queues at most, the fabric says 100; write queues = 16"),
            std::string::npos)
      << log.warned();
}

// A device that does not spread frames has one useful queue.
TEST_F(QueuesOfAPort, FewerAreUsedWhereTheNumberIsAutomatic) {
  close();
  PortConfig config = this->config();
  config.queues = 4;
  config.fewer_queues_will_do = true;
  const auto port = Port::open(config);
  ASSERT_TRUE(port);
  EXPECT_EQ(port->queues(), 1);
  EXPECT_EQ(port->pools().rx->size, 4 * config.rx_frames) << "with the memory of all";
}

}  // namespace
}  // namespace ztcp::link
