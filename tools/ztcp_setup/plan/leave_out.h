// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Of NICs that stay with the kernel and could all be used: which are not, and why. What the
// operator named, or the config has, stays in.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "config/network/reserved.h"
#include "config/topology/topology.h"

namespace ztcp::setup {

using NicNames = std::set<std::string, std::less<>>;
using IsAskedFor = std::function<bool(const config::HostNic&)>;

// By its PCI address, its interface, or its RDMA device.
bool has_name_of(const NicNames& list, const config::HostNic& nic);
// What --take calls it.
const std::string& word_for(const config::HostNic& nic);

// NCCL prefers a faster device to a nearer one, so that a slow one would be idle at best.
void leave_slow_ones(std::vector<config::HostNic>& nics, const IsAskedFor& is_asked_for);
// What the machine lives on is shared with jobs only where there is nothing else.
void leave_reserved_ones(std::vector<config::HostNic>& nics, const config::Reserved& reserved,
                         const IsAskedFor& is_asked_for);
void leave_all_but(std::vector<config::HostNic>& nics, unsigned count);

}  // namespace ztcp::setup
