// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The steps of make_plan(), in their order. Each extends the plan and adds its faults to the notes.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

// The name of a NIC of the machine: its RDMA device, or its interface, while it has one.
std::string name_of(const config::HostNic& nic);
// Whether `list` contains one of its names: its PCI address, an interface, its RDMA device.
bool has_name_of(const std::set<std::string, std::less<>>& list, const config::HostNic& nic);

// judge_request.cc: judges whether the requested things exist and fit together.
void judge_request(const PlanInput& input, Plan& plan);

// choose_nics.cc: fills plan.pairs, and plan.sockets where nothing else is possible.
void choose_nics(const PlanInput& input, Plan& plan);

// choose_interfaces.cc: fills plan.pairs and plan.sockets with kernel interfaces; plan.topology
// then has the reasons for the unused ones. False, with a fault: there is none, and the plan is
// otherwise unchanged.
bool choose_interfaces(const PlanInput& input, std::string why, Plan& plan);

// choose_rdma.cc: fills plan.pairs and plan.verbs with ports of RDMA devices, which also become
// plan.topology.nics.
void choose_rdma(const PlanInput& input, std::string why, Plan& plan);

// describe_nic.cc: the config's entry for a pair's NIC, appended to those that `fabric` has.
config::Nic describe_nic(const PlanInput& input, Plan& plan, const config::Pair& pair,
                         const config::Fabric& fabric);
// "ztcp0" and up; a NIC in the config keeps its name when NICs are added.
std::string device_name(const PlanInput& input, const config::Nic& nic,
                        const config::Fabric& fabric);

// plan_speed.cc
void decide_speeds(const PlanInput& input, Plan& plan, std::vector<config::Nic>& nics);

// plan_class.cc: the machine's identity, the accounts, and the host class by its IOMMU.
void decide_host(const PlanInput& input, Plan& plan, config::Fabric& fabric);

// plan_pages.cc: sizes and counts of hugepages, and obstacles to them.
struct PagesDecision {
  std::uint32_t page_kib = 0;
  std::uint32_t per_gpu_mib = 0;
  std::uint32_t spare_mib = 0;
  std::vector<NodePages> pages;
};
PagesDecision decide_pages(const PlanInput& input, const std::vector<config::Nic>& nics,
                           std::vector<config::Check>& notes);

}  // namespace ztcp::setup
