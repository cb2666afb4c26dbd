// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC with a device that spreads received frames over queues, each with its own poller: however
// the device spreads them, a connection and all its flows are on one queue, and every byte arrives.
#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/support/spread_links.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/ustack/nic.h"

namespace ztcp::ustack {
namespace {

using namespace test;
using testing::HasSubstr;

enum class Device {
  kTold,      // Reports how it spreads frames.
  kUntold,    // Spreads frames and does not report how.
  kOneQueue,  // Delivers all frames to its first queue.
};
constexpr std::array kDeviceNames = {"told", "untold", "one_queue"};
constexpr std::array<std::size_t, 2> kQueues = {4, 3};

class Shards : public testing::TestWithParam<std::tuple<config::PollerMode, Device>> {
 protected:
  Shards() {
    std::array<SpreadNic, 2> nics;
    for (std::size_t host = 0; host < 2; ++host) {
      const auto spread = some_spread(kQueues[host], static_cast<std::uint32_t>(host) + 1);
      nics[host].queues = kQueues[host];
      nics[host].mac = {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
      nics[host].state = &states[host];
      if (device() != Device::kOneQueue)
        nics[host].spread = [spread](Endpoint source, Endpoint destination) {
          return std::size_t{spread->queue_of(source, destination)};
        };
      if (device() == Device::kTold) nics[host].told = spread;
    }
    auto links = make_spread_links(nics, 9000);
    for (std::size_t host = 0; host < 2; ++host) {
      for (auto& link : links[host]) sources[host]->add(name(host), std::move(link));
      const HostOptions options{.mode = std::get<0>(GetParam()),
                                .queues = static_cast<std::uint32_t>(kQueues[host])};
      hosts[host] = *create(one_nic_fabric(static_cast<int>(host), options),
                            test::cpus_of_this_process(), nullptr, sources[host]);
    }
  }
  static Device device() { return std::get<1>(GetParam()); }
  static std::string name(std::size_t host) { return "mem" + std::to_string(host); }

  static void transfer(Pair& pair, std::uint64_t seed, std::size_t count, std::size_t size) {
    std::thread sending([&] {
      for (std::uint64_t i = 0; i < count; ++i) {
        const Bytes bytes = pattern(size + i * 1000, i * 8 + seed);
        Request* request = post_until_taken(*pair.sender, bytes, nullptr);
        ASSERT_NE(request, nullptr);
        ASSERT_TRUE(finish(*request));
      }
    });
    for (std::uint64_t i = 0; i < count; ++i) {
      Bytes bytes(size + i * 1000);
      const auto request = post_recv(*pair.receiver, bytes);
      ASSERT_TRUE(request && *request != nullptr);
      ASSERT_TRUE(finish(**request));
      ASSERT_EQ(bytes, pattern(bytes.size(), i * 8 + seed));
    }
    sending.join();
  }

  std::array<std::atomic<LinkState>, 2> states{};
  std::array<std::shared_ptr<MemoryNics>, 2> sources = {std::make_shared<MemoryNics>(),
                                                        std::make_shared<MemoryNics>()};
  std::array<std::unique_ptr<Transport>, 2> hosts;
};
std::string name_of_row(const testing::TestParamInfo<Shards::ParamType>& row) {
  const bool shared = std::get<0>(row.param) == config::PollerMode::kShared;
  return std::string(shared ? "shared_" : "dedicated_") +
         kDeviceNames[static_cast<std::size_t>(std::get<1>(row.param))];
}
INSTANTIATE_TEST_SUITE_P(
    Devices, Shards,
    testing::Combine(testing::Values(config::PollerMode::kShared, config::PollerMode::kDedicated),
                     testing::Values(Device::kTold, Device::kUntold, Device::kOneQueue)),
    name_of_row);

// The messages are large enough for further flows, which must reach the queue of the first.
TEST_P(Shards, EveryByteOfEveryConnectionArrives) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < 6; ++i) pairs.push_back(connect(*hosts[i % 2], *hosts[1 - i % 2]));
  for (std::size_t host = 0; host < 2; ++host) {
    std::set<std::string> queues;
    for (std::size_t i = host; i < 6; i += 2) queues.insert(lane_of(*pairs[i].sender));
    EXPECT_EQ(queues.size(), 3U) << "each is dialled on the queue with the fewest";
  }
  std::vector<std::thread> threads;
  for (std::size_t which = 0; which < pairs.size(); ++which)
    threads.emplace_back([&, which] { transfer(pairs[which], which, 8, 300'000); });
  for (std::thread& thread : threads) thread.join();
}

// Frames to the NIC itself do not pass through the device.
TEST_P(Shards, ANicReachesItselfOnEachQueue) {
  for (std::size_t i = 0; i < kQueues[0]; ++i) {
    std::vector<Pair> pairs;
    for (std::size_t j = 0; j <= i; ++j) pairs.push_back(connect(*hosts[0], *hosts[0]));
    EXPECT_EQ(lane_of(*pairs.back().sender), " lane " + std::to_string(i));
    EXPECT_EQ(lane_of(*pairs.back().receiver), lane_of(*pairs.back().sender));
    transfer(pairs.back(), i, 2, 200'000);
  }
}

TEST_P(Shards, RemovalOfTheNicFailsTheConnectionsOfAllQueues) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < 6; ++i) pairs.push_back(connect(*hosts[0], *hosts[1]));
  const Bytes bytes(4U << 20U);  // No buffer is posted for them.
  std::vector<Request*> sending;
  for (Pair& pair : pairs) {
    sending.push_back(post_until_taken(*pair.sender, bytes, nullptr));
    ASSERT_NE(sending.back(), nullptr);
  }
  const LogCapture log;
  states[0].store(LinkState::kGone);
  for (Request* const request : sending) {
    const auto sent = finish(*request);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, Errc::kNoDevice);
  }
  EXPECT_FALSE(hosts[0]->listen(0, {}));
  pairs.clear();
  hosts[0].reset();
  EXPECT_EQ(sources[0]->threads_started.load(), sources[0]->threads_ended.load());
  EXPECT_EQ(sources[0]->threads_ended.load(), static_cast<int>(kQueues[0]));
}

// Without Device::kUntold, where frames may be handed over or not.
class HandedOver : public Shards {};
INSTANTIATE_TEST_SUITE_P(Devices, HandedOver,
                         testing::Combine(testing::Values(config::PollerMode::kShared,
                                                          config::PollerMode::kDedicated),
                                          testing::Values(Device::kTold, Device::kOneQueue)),
                         name_of_row);

// If the device reports its spread, the stack chooses ports so that no frame needs handing over.
TEST_P(HandedOver, FramesAreCountedInTheSummary) {
  LogCapture log;
  {
    Pair pair = connect(*hosts[0], *hosts[1]);
    Pair second = connect(*hosts[0], *hosts[1]);
    transfer(pair, 1, 2, 20'000);
    transfer(second, 2, 2, 20'000);
  }
  hosts[0].reset();
  std::string said;
  for (const std::string& line : log.infos())
    if (line.find("closed; it") != std::string::npos) said += line + "\n";
  if (device() == Device::kTold) {
    EXPECT_THAT(said, testing::Not(HasSubstr("handed_over")));
  } else {
    EXPECT_THAT(said, HasSubstr("handed_over"));
  }
}

}  // namespace
}  // namespace ztcp::ustack
