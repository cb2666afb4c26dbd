// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "config/machine.h"
#include "hugepage/budget.h"
#include "hugepage/sysfs.h"

namespace ztcp::setup {
namespace {

constexpr std::uint32_t kLargePageKib = 1048576;
constexpr std::uint32_t kSmallPageKib = 2048;

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : input_(input), base_(input.root == "/" ? "" : input.root) {}

  Plan make() {
    auto topology = config::detect(input_.root, input_.addresses);
    if (!topology) return note(config::Severity::kFault, topology.error()), std::move(plan_);
    plan_.topology = std::move(*topology);
    auto pairs = config::assign(plan_.topology);
    if (!pairs) return note(config::Severity::kFault, pairs.error()), std::move(plan_);
    plan_.pairs = std::move(*pairs);

    config::Fabric fabric;
    fabric.path = input_.config_path;
    fabric.host = host();
    fabric.hugepages.page_kib = page_kib();
    for (const config::Pair& pair : plan_.pairs) fabric.nics.push_back(nic_for(pair, fabric));
    plan_pages(fabric);
    plan_modules(fabric);
    plan_nics(fabric);
    plan_files(fabric);
    plan_.fabric = std::move(fabric);
    return std::move(plan_);
  }

 private:
  void note(config::Severity severity, config::Problem problem) {
    plan_.notes.push_back({severity, std::move(problem)});
  }
  void change(std::string what, std::string command) {
    plan_.changes.push_back({std::move(what), std::move(command)});
  }

  config::Host host() {
    config::Host host;
    host.machine_id = config::read_line(base_ + "/etc/machine-id").value_or("");
    host.hostname = config::read_line(base_ + "/proc/sys/kernel/hostname").value_or("");
    const bool iommu = std::all_of(plan_.pairs.begin(), plan_.pairs.end(), [&](const auto& pair) {
      return plan_.topology.nics[pair.nic].has_iommu_group;
    });
    host.host_class = iommu ? config::HostClass::kIommu : config::HostClass::kNoIommu;
    return host;
  }

  // Large pages wherever the machine has them: one entry of the NIC's page table for 1 GiB.
  std::uint32_t page_kib() const {
    const std::string large =
        fmt::format("{}/sys/kernel/mm/hugepages/hugepages-{}kB", base_, kLargePageKib);
    return config::exists(large) ? kLargePageKib : kSmallPageKib;
  }

  const config::Nic* existing_nic(const std::string& pci) const {
    if (!input_.existing) return nullptr;
    for (const config::Nic& nic : input_.existing->nics)
      if (nic.pci == pci) return &nic;
    return nullptr;
  }

  config::Nic nic_for(const config::Pair& pair, const config::Fabric& fabric) {
    const config::HostNic& found = plan_.topology.nics[pair.nic];
    const config::Gpu& gpu = plan_.topology.gpus[pair.gpu];
    config::Nic nic;
    // What a NIC says while the kernel has it; afterwards only the config remembers.
    if (const config::Nic* known = existing_nic(found.pci); known != nullptr) nic = *known;
    nic.name = fmt::format("ztcp{}", fabric.nics.size());
    nic.driver = config::NicDriver::kPci;
    nic.pci = found.pci;
    nic.numa_node = found.numa_node;
    nic.gpu_pci = gpu.pci;
    nic.gpu_uuid = gpu.uuid;
    if (!found.interface.empty()) {
      nic.kernel_driver = found.driver;
      nic.mac = found.mac;
      nic.mtu_bytes = static_cast<std::uint16_t>(std::clamp(found.mtu_bytes, 576U, 9216U));
      nic.speed_mbps = found.speed_mbps;
      nic.gateway = found.gateway;
      if (found.address) nic.address = *found.address;
    }
    const std::string name = found.interface.empty() ? found.pci : found.interface;
    if (nic.address.address.value == 0)
      note(config::Severity::kFault,
           {name, "has no IPv4 address, so the config can't give it one",
            found.interface.empty()
                ? fmt::format("give {} back to its kernel driver and run ztcp_setup again", name)
                : fmt::format("sudo ip address add ADDRESS/LENGTH dev {}, as the cloud assigned it",
                              name)});
    return nic;
  }

  std::uint64_t pages_of(std::int32_t node, std::uint32_t page_kib) const {
    std::uint64_t pages = 0;
    for (const auto& pool : hugepage::read_pages({base_ + "/sys", base_ + "/proc"}))
      if (pool.page_kib == page_kib && (node < 0 || pool.node == node)) pages += pool.total;
    return pages;
  }

  // 5 GiB near each NIC, and the 10 GiB of the host spread over the same nodes.
  void plan_pages(const config::Fabric& fabric) {
    std::map<std::int32_t, std::uint64_t> mib_of_node;
    for (const config::Nic& nic : fabric.nics) mib_of_node[nic.numa_node] += hugepage::kMibPerGpu;
    const std::uint64_t share = hugepage::kMibPerHost / mib_of_node.size();
    std::uint64_t rest = hugepage::kMibPerHost - share * mib_of_node.size();
    for (auto& [node, mib] : mib_of_node) {
      mib += share + rest;
      rest = 0;
      const NodePages pages{
          node, hugepage::pages_for(static_cast<std::uint32_t>(mib), fabric.hugepages.page_kib),
          pages_of(node, fabric.hugepages.page_kib)};
      plan_.pages.push_back(pages);
      if (pages.have >= pages.want) continue;
      const std::string pool =
          node < 0 ? "/sys/kernel/mm" : fmt::format("/sys/devices/system/node/node{}", node);
      change(fmt::format("{}: {} -> {} pages of {} KiB",
                         node < 0 ? "hugepages" : fmt::format("hugepages of NUMA node {}", node),
                         pages.have, pages.want, fabric.hugepages.page_kib),
             fmt::format("echo {} > {}/hugepages/hugepages-{}kB/nr_hugepages", pages.want, pool,
                         fabric.hugepages.page_kib));
    }
  }

  void plan_modules(const config::Fabric& fabric) {
    if (!config::exists(base_ + "/sys/bus/pci/drivers/vfio-pci"))
      change("load the vfio-pci driver", "modprobe vfio-pci");
    const std::string flag = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    if (fabric.host.host_class == config::HostClass::kNoIommu &&
        config::read_line(base_ + flag) != "Y")
      change("let vfio work without an IOMMU", "echo 1 > " + flag);
  }

  void plan_nics(const config::Fabric& fabric) {
    for (std::size_t i = 0; i < plan_.pairs.size(); ++i) {
      const config::HostNic& nic = plan_.topology.nics[plan_.pairs[i].nic];
      if (nic.driver == "vfio-pci") continue;
      if (!nic.interface.empty())
        change(fmt::format("{}: up -> down, {} leaves the kernel's network", nic.interface,
                           to_string(fabric.nics[i].address)),
               fmt::format("ip link set dev {} down", nic.interface));
      change(fmt::format("{} ({}): {} -> vfio-pci", nic.pci, fabric.nics[i].name,
                         nic.driver.empty() ? "no driver" : nic.driver),
             fmt::format("dpdk-devbind.py --bind=vfio-pci {}", nic.pci));
    }
  }

  void plan_files(const config::Fabric& fabric) {
    if (!config::exists(base_ + fabric.run_dir))
      change(fmt::format("make {}", fabric.run_dir),
             fmt::format("install -d -m 1777 {}", fabric.run_dir));
    change(
        fmt::format("{} {}, {} NICs", config::exists(base_ + fabric.path) ? "write again" : "write",
                    fabric.path, fabric.nics.size()),
        "ztcp_setup");
  }

  const PlanInput& input_;
  std::string base_;
  Plan plan_;
};

}  // namespace

HostClassFacts facts_of(config::HostClass host_class) {
  switch (host_class) {
    case config::HostClass::kIommu:
      return {'A',
              "IOMMU present: an ordinary user drives the NICs through vfio, sends are zero-copy"};
    case config::HostClass::kNoIommu:
      return {'B',
              "no IOMMU: vfio without protection; processes need CAP_SYS_RAWIO, sends are copied "
              "once, and a NIC could reach any memory of this machine"};
    case config::HostClass::kUnprivileged:
      break;
  }
  return {'C', "software NICs only: no privilege, no hugepages, no kernel bypass"};
}

std::uint64_t Plan::hugepage_mib() const {
  std::uint64_t mib = 0;
  for (const NodePages& node : pages) mib += node.want * fabric->hugepages.page_kib / 1024;
  return mib;
}

Plan make_plan(const PlanInput& input) { return Planner(input).make(); }

}  // namespace ztcp::setup
