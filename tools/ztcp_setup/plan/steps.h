// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The steps of make_plan(), in their order. Each adds to the plan, and its faults to the notes.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

// What a NIC of the machine is called: by its RDMA device, or by its interface, while it has one.
std::string name_of(const config::HostNic& nic);
// Whether one of these is a name of it: its PCI address, an interface, its RDMA device.
bool has_name_of(const std::set<std::string, std::less<>>& list, const config::HostNic& nic);

// judge_request.cc: whether what was asked for is there, and may be had together.
void judge_request(const PlanInput& input, Plan& plan);

// choose_nics.cc: plan.pairs, and plan.sockets where there are none to be had otherwise.
void choose_nics(const PlanInput& input, Plan& plan);

// choose_interfaces.cc: plan.pairs and plan.sockets, over interfaces that stay with the kernel;
// plan.topology then tells which, and why not the others. False, and a fault: there are none, and
// nothing else has changed.
bool choose_interfaces(const PlanInput& input, std::string why, Plan& plan);

// choose_rdma.cc: plan.pairs and plan.verbs, over ports of RDMA devices, which plan.topology.nics
// are then.
void choose_rdma(const PlanInput& input, std::string why, Plan& plan);

// describe_nic.cc: what the config will say of a pair's NIC, behind those that `fabric` has.
config::Nic describe_nic(const PlanInput& input, Plan& plan, const config::Pair& pair,
                         const config::Fabric& fabric);
// "ztcp0" and up; a NIC of the config keeps its name when NICs are added.
std::string device_name(const PlanInput& input, const config::Nic& nic,
                        const config::Fabric& fabric);

// plan_speed.cc
void decide_speeds(const PlanInput& input, Plan& plan, std::vector<config::Nic>& nics);

// plan_class.cc: which machine it is, for whom it is set up, and what its IOMMU allows.
void decide_host(const PlanInput& input, Plan& plan, config::Fabric& fabric);

// plan_pages.cc: sizes and counts of hugepages, and what keeps the machine from having them.
struct PagesDecision {
  std::uint32_t page_kib = 0;
  std::uint32_t per_gpu_mib = 0;
  std::uint32_t spare_mib = 0;
  std::vector<NodePages> pages;
};
PagesDecision decide_pages(const PlanInput& input, const std::vector<config::Nic>& nics,
                           std::vector<config::Check>& notes);

}  // namespace ztcp::setup
