// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The rules by which a NIC that stays with the kernel hands over TCP segments to ztcp's ports, and
// no other frame.
#pragma once

#include <cstdint>
#include <string>

#include <rte_flow.h>

#include "core/result.h"
#include "transport/link/xdp/program.h"

namespace ztcp::link::mlx5 {

// DPDK's functions; tests record the calls.
struct FlowCalls {
  int (*isolate)(std::uint16_t port, int on, rte_flow_error* error) = rte_flow_isolate;
  rte_flow* (*create)(std::uint16_t port, const rte_flow_attr* attributes,
                      const rte_flow_item pattern[], const rte_flow_action actions[],
                      rte_flow_error* error) = rte_flow_create;
};

// A port and its name for the log.
struct FlowPort {
  std::uint16_t id = 0;
  std::string name;
  FlowCalls calls;
};

// Before the port is configured: without it the driver takes every frame to the NIC's MAC address,
// and the host is deaf. Both log their failure.
Status isolate(const FlowPort& port);

// The port has started. The rules end with it.
Status steer(const FlowPort& port, const xdp::Steering& wanted, std::uint16_t queues);

}  // namespace ztcp::link::mlx5
