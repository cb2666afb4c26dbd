// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A job that starts before its NIC has a carrier: a port that negotiates, a switch that comes up.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/ustack/memory_nics.h"
#include "tests/unit/ustack/polling.h"

namespace ztcp::ustack {
namespace {

using namespace std::chrono_literals;

// Longer than handshake_timeout_ms, which is for peers; tcp.connect_timeout_ms is far away.
TEST(LateLink, AConnectWaitsForItAsLongAsForAPeer) {
  std::atomic<link::LinkState> state{link::LinkState::kDown};
  const HostOptions options{.handshake_timeout_ms = 500};
  link::MemoryLinkOptions cable;
  cable.mtu_bytes = options.mtu_bytes;
  cable.states = {&state, nullptr};
  auto links = link::make_memory_links(cable);
  std::array<std::shared_ptr<MemoryNics>, 2> sources = {std::make_shared<MemoryNics>(),
                                                        std::make_shared<MemoryNics>()};
  sources[0]->add("mem0", std::move(links.first));
  sources[1]->add("mem1", std::move(links.second));
  const auto here = *create(one_nic_fabric(0, options), nullptr, sources[0]);
  const auto there = *create(one_nic_fabric(1, options), nullptr, sources[1]);

  std::thread carrier([&] {
    std::this_thread::sleep_for(800ms);
    state.store(link::LinkState::kUp);
  });
  const Pair pair = connect(*here, *there);
  carrier.join();
  EXPECT_NE(pair.sender, nullptr);
  EXPECT_NE(pair.receiver, nullptr);
}

}  // namespace
}  // namespace ztcp::ustack
