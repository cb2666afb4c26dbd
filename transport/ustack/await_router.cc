// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/await_router.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "core/log.h"
#include "transport/ustack/lane.h"

namespace ztcp::ustack {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(2);  // Between two looks.

template <class Fn>
auto with_lane(comms::Poller& poller, Fn&& fn) {
  return poller.with_backend([&](TimePoint) { return fn(static_cast<Lane&>(poller.backend())); });
}

// Calls is_done() until it returns true, for tcp.connect_timeout_ms at most.
template <class Fn>
bool wait_for(const config::Fabric& fabric, Fn&& is_done) {
  const TimePoint end =
      comms::Poller::read_clock() + std::chrono::milliseconds(fabric.tcp.connect_timeout_ms);
  while (!is_done()) {
    if (comms::Poller::read_clock() >= end) return false;
    std::this_thread::sleep_for(kInterval);
  }
  return true;
}

}  // namespace

Result<tcp::TakenAddress> await_address(const config::Fabric& fabric, Nic& nic) {
  comms::Poller& first = *nic.pollers.front();
  std::optional<tcp::TakenAddress> taken;
  const bool is_known = wait_for(fabric, [&] {
    taken = with_lane(first, [](Lane& lane) { return lane.taken_address(); });
    return taken.has_value();
  });
  if (!is_known) {
    log::warn(
        "{}: no router has advertised a prefix for addresses within {} ms (tcp.connect_timeout_ms),"
        " and address = \"auto\" needs one: {}",
        nic.config.name, fabric.tcp.connect_timeout_ms,
        first.backend().state() == LinkState::kDown
            ? first.backend().down_advice()
            : "let the network's routers advertise a prefix of 64 bits with the autonomous flag, "
              "or write the NIC's address as address in " +
                  fabric.path);
    return fail(Errc::kNoRoute, "advertised prefix");
  }
  if (taken->address.length == 128 && !nic.config.gateway) {
    log::warn(
        "{}: the prefix of {}, which the router {} advertises, is not on the link, so all hosts "
        "are behind a router: write gateway = \"auto\" in {}",
        nic.config.name, to_string(taken->address.address), to_string(taken->router), fabric.path);
    return fail(Errc::kNoRoute, "advertised prefix");
  }
  for (const auto& poller : nic.pollers)
    if (poller.get() != &first) with_lane(*poller, [&](Lane& lane) { lane.take_address(*taken); });
  return *taken;
}

Status await_router(const config::Fabric& fabric, Nic& nic) {
  const auto awaits = [](const std::unique_ptr<comms::Poller>& poller) {
    return with_lane(*poller, [](Lane& lane) { return lane.awaits_router(); });
  };
  if (wait_for(fabric, [&] { return std::ranges::none_of(nic.pollers, awaits); })) return {};
  log::warn(
      "{}: no router has advertised itself within {} ms (tcp.connect_timeout_ms), and gateway = "
      "\"auto\" needs one: write the router's address as gateway in {}, or remove the line if all "
      "hosts are in one network",
      nic.config.name, fabric.tcp.connect_timeout_ms, fabric.path);
  return fail(Errc::kNoRoute, "router advertisement");
}

}  // namespace ztcp::ustack
