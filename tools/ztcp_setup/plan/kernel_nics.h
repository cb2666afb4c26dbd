// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs that stay with the kernel, as interfaces or as ports of RDMA devices: chooses among the
// usable ones, assigns them to GPUs, and describes them for the config.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "config/problem.h"
#include "config/settings.h"
#include "config/topology/topology.h"
#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
// The index of the config's NIC that is this NIC of the machine.
std::size_t place_in_config(const PlanInput& input, const config::HostNic& nic);

// Leaves out NICs that are slower than others or that the machine itself needs, unless --take or
// the config names them; then those beyond --nics. GPUs share the rest: plan.pairs. If none is
// left, reports the fault `nothing` with the reason for each NIC.
void share_kernel_nics(const PlanInput& input, config::Problem nothing, Plan& plan);

// Processes that share an interface, with one for each GPU.
std::uint16_t processes_of_each(const Plan& plan);

// The chosen NICs, in order.
std::vector<config::Nic> describe_kernel_nics(const PlanInput& input, const Plan& plan);

}  // namespace ztcp::setup
