// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/plan.h"

#include <algorithm>
#include <cassert>

#include "config/file/load.h"
#include "tools/ztcp_setup/plan/config_access.h"
#include "tools/ztcp_setup/plan/iommu.h"
#include "tools/ztcp_setup/plan/kernel_nics.h"
#include "tools/ztcp_setup/plan/resources_for.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

using config::Severity;

// A NIC in the config was chosen before: a default route that a cloud gave it since does not
// exclude it.
config::Selection selection_of(const PlanInput& input) {
  config::Selection selection = input.request.selection;
  if (input.request.mode != Mode::kFresh && input.existing)
    for (const config::Nic& nic : input.existing->nics) selection.take.insert(nic.pci);
  return selection;
}

// Returns false, with a fault, if the machine can't be read.
bool inspect(const PlanInput& input, Plan& plan) {
  auto network = input.host.network();
  if (!network) return plan.fault("machine", network.error()), false;
  plan.network = std::move(*network);
  auto topology =
      config::detect(input.host, input.host.fsroot(), plan.network, selection_of(input));
  if (!topology) return plan.fault("machine", topology.error()), false;
  plan.topology = std::move(*topology);
  return true;
}

void take_pages(PagesDecision pages, config::Fabric& fabric, Plan& plan) {
  fabric.hugepages = {pages.page_kib, pages.per_gpu_mib, pages.spare_mib};
  plan.spare_mib = pages.spare_mib;
  plan.pages = std::move(pages.pages);
}

// Kernel arguments for the next boot.
Resources boot_resources(const PlanInput& input, std::uint32_t page_kib, Plan& plan) {
  // Kept once asked for: an argument that is no longer wanted would be reverted.
  std::vector<std::string> arguments;
  for (std::string& argument : iommu_arguments(read_iommu(input.host)))
    if (plan.awaits_reboot || boots_with(input.host, argument))
      arguments.push_back(std::move(argument));
  BootPlan boot = plan_boot(input.host, plan.pages, page_kib, arguments);
  for (config::Check& one : boot.notes) plan.notes.push_back(std::move(one));
  return std::move(boot.resources);
}

// A driver without DMA-BUF support reaches GPU memory through the module only. Also wanted when it
// is loaded, for the next boot; not where the older module is loaded, which takes its place.
bool needs_peer_memory(const config::GpuDirect& found) {
  const bool has_other = !found.module.empty() && found.module != config::kPeerMemoryModule;
  return found.has_gpu_driver && !found.has_dmabuf && !has_other && found.is_module_at_hand;
}

void make_resources(const PlanInput& input, const config::Fabric& fabric, Plan& plan) {
  PlanParts parts;
  parts.pages = plan.pages;
  if (plan.is_over_dpdk()) parts.boot = boot_resources(input, fabric.hugepages.page_kib, plan);
  // Comments of the operator stay, as long as no value changes.
  parts.config_text =
      input.existing && *input.existing == fabric ? input.existing_text : to_toml(fabric);
  // Set-up refuses any config that the plugin would refuse.
  if (!plan.has_faults())
    for (config::Problem& problem : config::parse(parts.config_text, fabric.path).problems)
      plan.fault("config", std::move(problem));
  ConfigAccess access = config_access(input.host, fabric);
  parts.config_mode = access.mode;
  parts.config_group = std::move(access.group);
  if (access.note) plan.notes.push_back(std::move(*access.note));
  parts.unit_text = input.unit_text;
  parts.wants_peer_memory = plan.verbs && needs_peer_memory(plan.verbs->gpu_direct);
  plan.resources = plan.awaits_reboot ? parts.boot : resources_for(fabric, parts, input.host);
  if (plan.is_over_dpdk() && !has_packaged_unit(input.host) && input.unit_text.empty())
    plan.note(Severity::kWarning, "boot", kUnit,
              plan.takes_nics() ? "is not installed, so NICs and pages are lost at the next boot"
                                : "is not installed, so pages are lost at the next boot",
              "install ztcp from its package, or run ztcp_setup after each boot");
}

}  // namespace

const std::string& PlanInput::user() const {
  return request.user.empty() && existing ? existing->host.user : request.user;
}

const std::string& PlanInput::group() const {
  return request.group.empty() && existing ? existing->host.group : request.group;
}

const config::Nic* PlanInput::existing_nic(const std::string& pci) const {
  if (!existing) return nullptr;
  for (const config::Nic& nic : existing->nics)
    if (nic.pci == pci) return &nic;
  return nullptr;
}

std::optional<Transport> PlanInput::transport() const {
  if (request.transport || !existing || existing->nics.empty()) return request.transport;
  switch (existing->nics.front().driver) {
    case config::NicDriver::kPci:
      return Transport::kUstack;
    case config::NicDriver::kSocket:
      return Transport::kSockets;
    case config::NicDriver::kXdp:
      return Transport::kXdp;
    case config::NicDriver::kMlx5:
      return Transport::kMlx5;
    case config::NicDriver::kVerbs:
      return Transport::kVerbs;
    default:
      return std::nullopt;
  }
}

const char* name_of(Transport transport) {
  switch (transport) {
    case Transport::kXdp:
      return "xdp";
    case Transport::kMlx5:
      return "mlx5";
    case Transport::kSockets:
      return "sockets";
    case Transport::kVerbs:
      return "verbs";
    case Transport::kUstack:
      break;
  }
  return "ustack";
}

const char* title_of(Transport transport) {
  switch (transport) {
    case Transport::kXdp:
      return "AF_XDP";
    case Transport::kMlx5:
      return "DPDK's mlx5 driver";
    case Transport::kSockets:
      return "kernel sockets";
    case Transport::kVerbs:
      return "RDMA devices";
    case Transport::kUstack:
      break;
  }
  return "NICs of ztcp's own";
}

bool is_same(const config::Nic& nic, const config::HostNic& one) {
  switch (nic.driver) {
    case config::NicDriver::kSocket:
    case config::NicDriver::kXdp:
    case config::NicDriver::kMlx5:
      return !one.rdma && one.address_interface == nic.interface;
    case config::NicDriver::kVerbs:
      return one.rdma && one.rdma->device == nic.device && one.rdma->port == nic.device_port;
    default:
      return one.pci == nic.pci;
  }
}

const config::HostNic& Plan::host_nic(const config::Nic& nic) const {
  const auto found = std::find_if(
      topology.nics.begin(), topology.nics.end(),
      [&](const config::HostNic& one) { return one.unfit.empty() && is_same(nic, one); });
  assert(found != topology.nics.end());
  return *found;
}

const config::Nic& Plan::fabric_nic(const config::Pair& pair) const {
  const config::HostNic& wanted = topology.nics[pair.nic];
  const auto found =
      std::find_if(fabric->nics.begin(), fabric->nics.end(),
                   [&](const config::Nic& nic) { return &host_nic(nic) == &wanted; });
  assert(found != fabric->nics.end());
  return *found;
}

void Plan::note(Severity severity, std::string name, std::string where, std::string what,
                std::string mend) {
  notes.push_back(
      {std::move(name), severity, {std::move(where), std::move(what), std::move(mend)}});
}

void Plan::fault(std::string name, config::Problem problem) {
  notes.push_back({std::move(name), Severity::kFault, std::move(problem)});
}

std::uint64_t Plan::hugepage_mib() const {
  std::uint64_t mib = 0;
  for (const NodePages& node : pages) mib += node.want * fabric->hugepages.page_kib / 1024;
  return mib;
}

bool Plan::has_faults() const {
  return std::any_of(notes.begin(), notes.end(),
                     [](const config::Check& note) { return note.severity == Severity::kFault; });
}

Plan make_plan(const PlanInput& input) {
  Plan plan;
  if (!inspect(input, plan)) return plan;
  judge_request(input, plan);
  choose_nics(input, plan);
  if (plan.pairs.empty()) return plan;

  config::Fabric fabric = input.existing.value_or(config::Fabric{});
  fabric.path = input.request.config_path;
  fabric.nics.clear();
  if (plan.takes_nics())
    for (const config::Pair& pair : plan.pairs)
      fabric.nics.push_back(describe_nic(input, plan, pair, fabric));
  else
    fabric.nics = describe_kernel_nics(input, plan);
  decide_speeds(input, plan, fabric.nics);
  decide_host(input, plan, fabric);
  fabric.hugepages = {};
  if (plan.is_over_dpdk()) take_pages(decide_pages(input, fabric.nics, plan.notes), fabric, plan);
  make_resources(input, fabric, plan);
  plan.fabric = std::move(fabric);
  return plan;
}

}  // namespace ztcp::setup
