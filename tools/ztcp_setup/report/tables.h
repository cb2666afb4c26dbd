// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Tables and lists of a plan's NICs, for people.
#pragma once

#include <string>

#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

// The NIC of each GPU, with the reason.
std::string pairs_text(const Plan& plan);
// All NICs on PCI, if there is no pairing.
std::string inventory_text(const config::Topology& topology);
std::string left_alone_text(const Plan& plan);
// "mlx5_0 port 1 (Ethernet, 100000 Mb/s, eth1)": active RDMA ports that a plan with another
// transport leaves unused; empty: none.
std::string idle_rdma_text(const Plan& plan);

}  // namespace ztcp::setup
