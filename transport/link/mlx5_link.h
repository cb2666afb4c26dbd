// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Link over DPDK's driver of ConnectX NICs. The kernel's driver keeps the NIC and its interface;
// rules in the NIC hand over the TCP segments to ztcp's own ports, and no other frame. Address,
// routes and neighbours are the host's, as for AF_XDP (xdp_link.h).
//
// It was built and tested against a fake of the NIC, and never ran on one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/link/eal.h"
#include "transport/link/link.h"
#include "transport/link/xdp/program.h"

namespace ztcp::link {

struct Mlx5Config {
  EalConfig eal;  // Hugepages: EAL is started once the interface has been checked.
  std::string interface;
  xdp::Steering steering;  // The interface has its address.
  std::uint16_t mtu_bytes = 1500;
  int numa_node = -1;
  std::uint16_t queues = 1;
  bool fewer_queues_will_do = false;
  std::uint32_t rx_frames = 8192;  // Per queue.
  bool counts_drops = false;       // LinkCounters::nic is kept, which takes a thread.
};

// A link for each queue, joined as in shards.h. Logs its failure.
Result<std::vector<std::unique_ptr<Link>>> open_mlx5(const Mlx5Config& config);

}  // namespace ztcp::link
