// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two in-memory NICs of several queues, joined by a link. Each spreads received TCP packets over
// its queues by addresses and ports; other packets come to the first queue. Each queue belongs to
// one thread.
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
  // The receive queue of a packet with these endpoints.
  std::function<std::size_t(Endpoint source, Endpoint destination)> spread =
      [](Endpoint, Endpoint) { return std::size_t{0}; };
  std::shared_ptr<const wire::ReceiveSpread> told;  // The receive spread that the NIC reports.
  // When set, the link state that the NIC reports; it receives and sends only while that is up.
  const std::atomic<LinkState>* state = nullptr;
};

using QueueLinks = std::vector<std::unique_ptr<link::Link>>;
std::array<QueueLinks, 2> make_spread_links(const std::array<SpreadNic, 2>& nics,
                                            std::uint16_t mtu_bytes);

// A spread with a key derived from `seed`.
std::shared_ptr<const wire::ReceiveSpread> some_spread(std::size_t queues, std::uint32_t seed);

}  // namespace ztcp::test
