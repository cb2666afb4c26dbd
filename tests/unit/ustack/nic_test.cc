// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/ustack/memory_nics.h"
#include "transport/link/memory_link.h"
#include "transport/ustack/lane.h"
#include "transport/ustack/nic_config.h"

namespace ztcp::ustack {
namespace {

// The thread of the first queue visits all pollers (death_watch.h), perhaps while the NIC is
// destroyed.
TEST(Nic, AllPollersExistWhileTheFirstVisitsThem) {
  const config::Fabric fabric = one_nic_fabric(0);
  auto nic = std::make_unique<Nic>(fabric.nics[0]);
  std::atomic<bool> is_checking{false};
  std::atomic<int> missing{0};
  std::vector<std::unique_ptr<link::Link>> far_ends;
  for (int queue = 0; queue < 3; ++queue) {
    auto [near, far] = link::make_memory_links({});
    far_ends.push_back(std::move(far));
    comms::PollerConfig poller;
    poller.name = poller.thread = "queue" + std::to_string(queue);
    if (queue == 0)
      poller.on_check = [&pollers = nic->pollers, &is_checking, &missing](TimePoint) {
        if (is_checking.exchange(true)) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        missing = 3 - static_cast<int>(pollers.size());
        for (const auto& one : pollers) missing += one == nullptr;
      };
    const auto engine = engine_config(fabric, fabric.nics[0], near->capabilities());
    ASSERT_TRUE(engine);
    nic->pollers.push_back(std::make_unique<comms::Poller>(
        poller, std::make_unique<Lane>(comms::Poller::read_clock(), poller.name, std::move(near),
                                       *engine)));
  }
  for (const auto& poller : nic->pollers) ASSERT_TRUE(poller->start());
  while (!is_checking) std::this_thread::yield();
  nic.reset();
  EXPECT_EQ(missing, 0);
}

}  // namespace
}  // namespace ztcp::ustack
