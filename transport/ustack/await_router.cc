// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/await_router.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "core/log.h"
#include "transport/ustack/lane.h"

namespace ztcp::ustack {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(2);  // Between two looks.

}  // namespace

Status await_router(const config::Fabric& fabric, Nic& nic) {
  const auto awaits = [](const std::unique_ptr<comms::Poller>& poller) {
    return poller->with_backend(
        [&](TimePoint) { return static_cast<Lane&>(poller->backend()).awaits_router(); });
  };
  const TimePoint end =
      comms::Poller::read_clock() + std::chrono::milliseconds(fabric.tcp.connect_timeout_ms);
  while (std::ranges::any_of(nic.pollers, awaits)) {
    if (comms::Poller::read_clock() >= end) {
      log::warn(
          "{}: no router has advertised itself within {} ms (tcp.connect_timeout_ms), and gateway "
          "= \"auto\" needs one: write the router's address as gateway in {}, or remove the line "
          "if "
          "all hosts are in one network",
          nic.config.name, fabric.tcp.connect_timeout_ms, fabric.path);
      return fail(Errc::kNoRoute, "router advertisement");
    }
    std::this_thread::sleep_for(kInterval);
  }
  return {};
}

}  // namespace ztcp::ustack
