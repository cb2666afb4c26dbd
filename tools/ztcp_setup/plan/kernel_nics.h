// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs that stay with the kernel, as interfaces or as ports of RDMA devices: which of those that
// could all be used are, for which GPUs, and what the config says of them.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "config/problem.h"
#include "config/settings.h"
#include "config/topology/topology.h"
#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
// Of the config's NICs, the one that is this one of the machine.
std::size_t place_in_config(const PlanInput& input, const config::HostNic& nic);

// Leaves out those that --take does not name, and the config does not have: what is slower than
// others, or what the machine lives on; then those beyond --nics. GPUs share the rest: plan.pairs.
// Where there is none, `nothing` is the fault, and behind it stands why each is of no use.
void share_kernel_nics(const PlanInput& input, config::Problem nothing, Plan& plan);

// Of the NICs that are fit, in order.
std::vector<config::Nic> describe_kernel_nics(const PlanInput& input, const Plan& plan);

}  // namespace ztcp::setup
