// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs of the product: DPDK ports and tap interfaces, claimed by lock files.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/machine.h"
#include "hugepage/budget.h"
#include "hugepage/sysfs.h"
#include "transport/core/log.h"
#include "transport/link/claim.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"
#include "transport/link/tap_link.h"
#include "transport/ustack/nic.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {
namespace {

class DpdkClaim final : public NicClaim {
 public:
  explicit DpdkClaim(link::Claim claim) : claim_(std::move(claim)) {}

 private:
  link::Claim claim_;
};

link::MemifConfig memif_config(const config::Nic& nic) {
  link::MemifConfig out;
  out.socket_path = nic.memif_socket;
  out.role = nic.memif_role == config::MemifRole::kServer ? link::MemifRole::kServer
                                                          : link::MemifRole::kClient;
  out.id = nic.memif_id;
  out.mac = nic.mac;
  out.mtu_bytes = nic.mtu_bytes;
  return out;
}

class DpdkNics final : public NicSource {
 public:
  explicit DpdkNics(const config::Fabric& fabric) : fabric_(on_this_machine(fabric)) {}

  Result<std::unique_ptr<NicClaim>> claim(const config::Nic& nic, std::string* holder) override {
    const bool on_pci = nic.driver == config::NicDriver::kPci;
    const std::string name = on_pci ? nic.pci : "software-" + nic.name;
    const std::string group = on_pci ? config::iommu_group("/sys", nic.pci) : std::string();
    link::ClaimHolder who;
    auto taken = link::Claim::take(fabric_.run_dir, name, group, &who);
    if (taken) return std::make_unique<DpdkClaim>(std::move(*taken));
    if (taken.error().code == Errc::kBusy) {
      *holder = link::to_string(who);
      if (shares_group(nic, group))
        *holder += fmt::format(", as all of its IOMMU group {}: ztcp_setup --check", group);
    } else {
      log::warn("{}: {}", nic.name,
                link::describe_failed_claim(taken.error(),
                                            link::lock_path(fabric_.run_dir, name, group)));
    }
    return tl::unexpected(taken.error());
  }

  Result<std::unique_ptr<link::Link>> open(const config::Nic& nic) override {
    switch (nic.driver) {
      case config::NicDriver::kMemif:
        ZTCP_CHECK(link::start_eal(plain_memory()));
        return link::open_memif(memif_config(nic));
      case config::NicDriver::kTap: {
        link::TapConfig tap;
        tap.interface = nic.tap_interface;
        tap.mac = nic.mac;
        tap.mtu_bytes = nic.mtu_bytes;
        return link::open_tap(tap);
      }
      case config::NicDriver::kPci:
        ZTCP_CHECK(link::start_eal(hugepage_memory()));
        return open_pci(nic);
    }
    __builtin_unreachable();
  }

  void on_thread_start() override { link::register_poller_thread(); }
  void on_thread_end() override { link::unregister_poller_thread(); }

 private:
  // A node that is not there has no memory: those NICs take it where it is, which is said.
  static config::Fabric on_this_machine(config::Fabric fabric) {
    for (config::Nic& nic : fabric.nics) {
      if (nic.numa_node < 0 || hugepage::has_numa_node(nic.numa_node)) continue;
      log::warn(
          "{}: numa_node = {} in the config, which this machine does not have: its memory may lie "
          "anywhere; ztcp_setup --dry-run shows this host's NICs",
          nic.name, nic.numa_node);
      nic.numa_node = -1;
    }
    return fabric;
  }

  bool shares_group(const config::Nic& nic, const std::string& group) const {
    return !group.empty() &&
           std::any_of(fabric_.nics.begin(), fabric_.nics.end(), [&](const config::Nic& other) {
             return other.driver == config::NicDriver::kPci && other.pci != nic.pci &&
                    config::iommu_group("/sys", other.pci) == group;
           });
  }

  Result<std::unique_ptr<link::Link>> open_pci(const config::Nic& nic) const {
    std::unique_ptr<link::Link> opened = ZTCP_TRY(link::open_pci(pci_config(nic)));
    const MacAddress mac = opened->capabilities().mac;
    if (mac == nic.mac) return opened;
    log::warn(
        "{}: mac = {} in the config, {} has {}: another NIC took its place; ztcp_setup --dry-run "
        "shows this host's NICs",
        nic.name, to_string(nic.mac), nic.pci, to_string(mac));
    return fail(Errc::kBadConfig, "mac");
  }

  // EAL can't grow later, so it gets room for every NIC of the fabric; pages that no NIC uses are
  // never touched.
  link::EalConfig plain_memory() const {
    std::uint32_t mib = link::kEalBaseMib;
    for (const config::Nic& nic : fabric_.nics) {
      if (nic.driver == config::NicDriver::kMemif) mib += link::memif_memory_mib(memif_config(nic));
    }
    link::EalConfig out;
    out.memory = link::EalMemory::kPlain;
    out.node_memory_mib = {mib};
    return out;
  }

  link::PciConfig pci_config(const config::Nic& nic) const {
    link::PciConfig out;
    out.address = nic.pci;
    out.mtu_bytes = nic.mtu_bytes;
    out.vlan_id = nic.vlan_id;
    out.numa_node = nic.numa_node;
    out.rx_frames = hugepage::kReceiveFrames;
    // Without an IOMMU the kernel may move user pages under the device.
    out.device_reads_user_memory = fabric_.host.host_class == config::HostClass::kIommu;
    return out;
  }

  // The same for NICs on PCI, near each of them, within what a process may take.
  link::EalConfig hugepage_memory() const {
    link::EalConfig out;
    out.memory = link::EalMemory::kHugepages;
    out.iova = fabric_.host.host_class == config::HostClass::kNoIommu ? link::IovaMode::kPhysical
                                                                      : link::IovaMode::kVirtual;
    out.node_memory_mib.clear();
    std::vector<hugepage::NicNeed> nics;
    for (const config::Nic& nic : fabric_.nics)
      if (nic.driver == config::NicDriver::kPci) nics.push_back({nic.numa_node, nic.mtu_bytes});
    // `ztcp_setup --check` holds the same numbers against the machine.
    for (const hugepage::NodeNeed& need : hugepage::process_needs(
             nics, fabric_.hugepages.per_process_mib, fabric_.hugepages.page_kib)) {
      out.node_memory_mib.resize(static_cast<std::size_t>(need.node) + 1);
      out.node_memory_mib.back() = need.mib;
    }
    return out;
  }

  const config::Fabric fabric_;
};

}  // namespace

Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric, GpuProbe probe) {
  return create(fabric, probe, std::make_shared<DpdkNics>(fabric));
}

}  // namespace ztcp::ustack
