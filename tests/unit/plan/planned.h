// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Cells of the table of plans.
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "config/settings.h"
#include "tests/support/cpu_view.h"
#include "transport/comms/poller_policy.h"
#include "transport/sockets/bulk_policy.h"
#include "transport/ustack/nic_config.h"
#include "transport/ustack/queue_choice.h"

namespace ztcp::plan {

struct Host {
  std::size_t cpus;
  std::size_t online;
  std::size_t quota;
  std::size_t ranks;
};

inline std::string sockets_cell(const config::Fabric& fabric, const Host& host, std::size_t devices,
                                std::uint32_t speed_mbps) {
  const auto bulk = sockets::choose_bulk(
      fabric, test::cpus(host.cpus, host.online, host.quota),
      {.devices = devices, .ranks = {host.ranks, "test"}, .speed_mbps = speed_mbps});
  return fmt::format("{}/{}/{}/{}", bulk.queues, bulk.workers, bulk.flows, bulk.views);
}

inline std::string userspace_cell(const config::Fabric& fabric, const Host& host) {
  const config::Nic& nic = fabric.nics.front();
  const comms::CpuView view = test::cpus(host.cpus, host.online, host.quota);
  const bool embedded = nic.driver == config::NicDriver::kMemif;
  const std::size_t lanes = ustack::choose_queues(nic, view, fabric.nics.size()).count;
  std::size_t helpers = 0;
  comms::PollerPolicy policy;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    policy = comms::choose_policy(fabric.poller, view,
                                  {.nic = 0,
                                   .nics = fabric.nics.size(),
                                   .queue = lane,
                                   .queues = lanes,
                                   .embedded = embedded});
    helpers += policy.workers;
  }
  return fmt::format("{}/{}/{}{}", lanes, helpers, policy.dedicated ? "D" : "S",
                     policy.spin / std::chrono::microseconds(1));
}

inline int mesh_devices(const config::Fabric& fabric) {
  return ustack::views(fabric, fabric.nics.front(), fabric.tunes_channels);
}

}  // namespace ztcp::plan
