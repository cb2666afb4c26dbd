// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two NICs of several queues, joined in memory, each of which spreads what it receives over its
// queues by the addresses and ports of TCP; all else comes to the first. Each queue belongs to one
// thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "transport/link/link.h"

namespace ztcp::test {

struct SpreadNic {
  std::size_t queues = 1;
  MacAddress mac;
  // Which queue a packet of these comes to.
  std::function<std::size_t(Endpoint source, Endpoint destination)> spread =
      [](Endpoint, Endpoint) { return std::size_t{0}; };
  std::shared_ptr<const wire::ReceiveSpread> told;  // What it says of that.
  // Where set: what it says of itself; it receives and sends nothing unless it is up.
  const std::atomic<link::LinkState>* state = nullptr;
};

using QueueLinks = std::vector<std::unique_ptr<link::Link>>;
std::array<QueueLinks, 2> make_spread_links(const std::array<SpreadNic, 2>& nics,
                                            std::uint16_t mtu_bytes);

// A spread with a key that follows from `seed`.
std::shared_ptr<const wire::ReceiveSpread> some_spread(std::size_t queues, std::uint32_t seed);

}  // namespace ztcp::test
