// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Cells of the table of plans.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "config/mesh.h"
#include "config/settings.h"
#include "tests/support/cpu_share.h"
#include "transport/plan/device_plan.h"
#include "transport/plan/nccl_devices.h"

namespace ztcp::plan {

struct Host {
  std::size_t cpus;
  std::size_t online;
  std::size_t quota;
  std::size_t ranks;
};

inline std::string sockets_cell(const config::Fabric& fabric, const Host& host, std::size_t devices,
                                std::uint32_t speed_mbps) {
  DeviceFacts facts;
  facts.is_kernels = true;
  facts.count = devices;
  facts.speed_mbps = speed_mbps;
  facts.nccl_devices =
      nccl_devices({.tunes_channels = fabric.tunes_channels, .interfaces = devices});
  const DevicePlan plan = plan_device(
      facts, test::cpus(host.cpus, host.online, host.quota, {host.ranks, "test"}), fabric.poller);
  return fmt::format("{}/{}/{}/{}", plan.lanes.size(), plan.helpers, plan.flows, plan.nccl_devices);
}

inline std::string userspace_cell(const config::Fabric& fabric, const Host& host) {
  const DevicePlan plan = plan_device(
      facts_of(fabric, 0), test::cpus(host.cpus, host.online, host.quota, {host.ranks, "test"}),
      fabric.poller);
  return fmt::format("{}/{}/{}{}", plan.lanes.size(), plan.helpers, plan.is_dedicated ? "D" : "S",
                     plan.spin / std::chrono::microseconds(1));
}

inline std::size_t mesh_devices(const config::Fabric& fabric) {
  const config::Nic& nic = fabric.nics.front();
  return nccl_devices({.tunes_channels = fabric.tunes_channels,
                       .mesh_peers = config::mesh_peers(fabric, nic).size(),
                       .mesh_queues = nic.queues});
}

}  // namespace ztcp::plan
