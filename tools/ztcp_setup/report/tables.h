// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a plan says of NICs, as tables and lists for people.
#pragma once

#include <string>

#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

// Which NIC each GPU has, and why.
std::string pairs_text(const Plan& plan);
// Everything on PCI, when there is no pairing to show it.
std::string inventory_text(const config::Topology& topology);
std::string left_alone_text(const Plan& plan);
// "mlx5_0 port 1 (Ethernet, 100000 Mb/s, eth1)", those that are active where the plan is over
// others; empty: there is none.
std::string idle_rdma_text(const Plan& plan);

}  // namespace ztcp::setup
