// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The NicSource of the product: DPDK ports, tap, AF_XDP and mlx5 interfaces and memory meshes,
// claimed by lock files.
#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/machine/hugepages.h"
#include "config/machine/live_machine.h"
#include "config/machine/readings.h"
#include "config/mesh.h"
#include "config/nic_interface.h"
#include "core/log.h"
#include "core/nic_slot.h"
#include "hugepage/budget.h"
#include "transport/link/claim.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"
#include "transport/link/mlx5_link.h"
#include "transport/link/shm_link.h"
#include "transport/link/tap_link.h"
#include "transport/link/xdp_link.h"
#include "transport/plan/device_plan.h"
#include "transport/stats/process_page.h"
#include "transport/ustack/nic.h"
#include "transport/ustack/nic_choice.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {
namespace {

class DpdkClaim final : public NicClaim {
 public:
  DpdkClaim(link::Claim claim, NicSlot slot) : claim_(std::move(claim)), slot_(slot) {}
  NicSlot slot() const override { return slot_; }

 private:
  link::Claim claim_;
  NicSlot slot_;
};

std::string gpu_of(const config::Nic& nic) {
  return nic.gpu_pci.empty() ? nic.gpu_uuid : nic.gpu_pci;
}

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
  DpdkNics(const config::Fabric& fabric, config::CpuShare cpus, GpuProbe probe)
      : fabric_(on_this_machine(fabric)), cpus_(std::move(cpus)), probe_(probe) {}

  Result<std::unique_ptr<NicClaim>> claim(const config::Nic& nic, std::string* holder) override {
    if (nic.processes > 1) return claim_slot(nic, holder);
    const bool on_pci = nic.driver == config::NicDriver::kPci;
    const std::string name = on_pci ? nic.pci : "software-" + nic.name;
    const std::string group = on_pci ? config::iommu_group(machine_, nic.pci) : std::string();
    link::ClaimHolder who;
    auto taken = link::Claim::take(fabric_.run_dir, name, group, &who);
    if (taken) return std::make_unique<DpdkClaim>(std::move(*taken), NicSlot());
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

  Result<std::vector<std::unique_ptr<link::Link>>> open(const config::Nic& asked,
                                                        const NicClaim& claim) override {
    const config::Nic& nic = as_here(asked);
    if (has_room_for_.empty())
      for (const config::Nic* one : expected_with(nic)) has_room_for_.insert(one->name);
    Result<std::vector<std::unique_ptr<link::Link>>> opened =
        nic.driver == config::NicDriver::kPci    ? open_pci(nic)
        : nic.driver == config::NicDriver::kMlx5 ? link::open_mlx5(mlx5_config(nic))
        : nic.driver == config::NicDriver::kXdp  ? link::open_xdp(xdp_config(nic, claim.slot()))
                                                 : open_each(nic);
    if (!opened && opened.error().code == Errc::kOutOfMemory && !has_room_for_.contains(nic.name))
      log::warn(
          "{}: this process reserved DPDK's memory for {} before it drove GPU {}, and that memory "
          "can't grow: make the communicators of all its GPUs before the first one connects, or "
          "run a process for each GPU",
          nic.name, fmt::join(has_room_for_, ", "), gpu_of(nic));
    return opened;
  }

  std::string run_dir() const override { return fabric_.run_dir; }
  void on_thread_start() override { link::register_poller_thread(); }
  void on_thread_end() override { link::unregister_poller_thread(); }

 private:
  // The lowest free slot of a NIC that processes share. The kernel frees the slot of a process that
  // ends in any way.
  Result<std::unique_ptr<NicClaim>> claim_slot(const config::Nic& nic, std::string* holder) const {
    std::vector<std::string> holders;
    for (std::uint16_t i = 0; i < nic.processes; ++i) {
      const std::string name = fmt::format("software-{}-slot-{}", nic.name, i);
      link::ClaimHolder who;
      auto taken = link::Claim::take(fabric_.run_dir, name, {}, &who);
      if (taken) return std::make_unique<DpdkClaim>(std::move(*taken), NicSlot{i, nic.processes});
      if (taken.error().code != Errc::kBusy) {
        log::warn(
            "{}: {}", nic.name,
            link::describe_failed_claim(taken.error(), link::lock_path(fabric_.run_dir, name, {})));
        return tl::unexpected(taken.error());
      }
      holders.push_back(link::to_string(who));
    }
    *holder = fmt::format("{}, as many as processes = {} in the config allows",
                          fmt::join(holders, ", "), nic.processes);
    return fail(Errc::kBusy, "claim");
  }

  Result<std::unique_ptr<link::Link>> open_by_driver(const config::Nic& nic,
                                                     std::uint32_t queue) const {
    switch (nic.driver) {
      case config::NicDriver::kMemif:
        if (nic.memif_role == config::MemifRole::kMesh) return open_mesh(nic, queue);
        ZTCP_CHECK(link::start_eal(plain_memory(nic)));
        return link::open_memif(memif_config(nic));
      case config::NicDriver::kTap: {
        link::TapConfig tap;
        tap.interface = nic.tap_interface;
        tap.mac = nic.mac;
        tap.mtu_bytes = nic.mtu_bytes;
        return link::open_tap(tap);
      }
      case config::NicDriver::kPci:  // One port has all queues.
      case config::NicDriver::kXdp:
      case config::NicDriver::kMlx5:
      case config::NicDriver::kSocket:
      case config::NicDriver::kVerbs:
        break;
    }
    return fail(Errc::kBadConfig, "a NIC of another transport");
  }

  Result<std::vector<std::unique_ptr<link::Link>>> open_each(const config::Nic& nic) const {
    std::vector<std::unique_ptr<link::Link>> opened;
    for (std::uint32_t queue = 0; queue < nic.queues; ++queue)
      opened.push_back(ZTCP_TRY(open_by_driver(nic, queue)));
    return opened;
  }

  // Needs no DPDK: this process shares a memory segment with each peer.
  Result<std::unique_ptr<link::Link>> open_mesh(const config::Nic& nic, std::uint32_t queue) const {
    link::ShmConfig mesh;
    mesh.mac = nic.mac;
    mesh.mtu_bytes = nic.mtu_bytes;
    std::vector<link::ShmPeer> peers;
    for (const config::MeshPeer& peer : config::mesh_peers(fabric_, nic))
      peers.push_back({peer.nic->mac, peer.sockets[queue], peer.serves});
    return link::open_shm_mesh(mesh, peers, std::chrono::microseconds(fabric_.poller.max_sleep_us));
  }

  static std::uint32_t memif_mib(const config::Nic& nic) {
    return nic.memif_role == config::MemifRole::kMesh ? 0
                                                      : link::memif_memory_mib(memif_config(nic));
  }

  // A NUMA node that this machine lacks has no memory: NICs configured for one take memory
  // anywhere, with a warning.
  static config::Fabric on_this_machine(config::Fabric fabric) {
    config::LiveMachine machine;
    for (config::Nic& nic : fabric.nics) {
      if (nic.numa_node < 0 || config::has_numa_node(machine, nic.numa_node)) continue;
      log::warn(
          "{}: numa_node = {} in the config, which this machine does not have: its memory may come "
          "from any node; ztcp_setup --dry-run shows this host's NICs",
          nic.name, nic.numa_node);
      nic.numa_node = -1;
    }
    return fabric;
  }

  const config::Nic& as_here(const config::Nic& asked) const {
    return *std::find_if(fabric_.nics.begin(), fabric_.nics.end(),
                         [&](const config::Nic& nic) { return nic.name == asked.name; });
  }

  bool shares_group(const config::Nic& nic, const std::string& group) const {
    return !group.empty() &&
           std::any_of(fabric_.nics.begin(), fabric_.nics.end(), [&](const config::Nic& other) {
             return other.driver == config::NicDriver::kPci && other.pci != nic.pci &&
                    config::iommu_group(machine_, other.pci) == group;
           });
  }

  Result<std::vector<std::unique_ptr<link::Link>>> open_pci(const config::Nic& nic) const {
    ZTCP_CHECK(link::start_eal(hugepage_memory(nic)));
    std::vector<std::unique_ptr<link::Link>> opened = ZTCP_TRY(link::open_pci(pci_config(nic)));
    const MacAddress mac = opened.front()->capabilities().mac;
    if (mac == nic.mac) return opened;
    log::warn(
        "{}: mac = {} in the config, {} has {}: another NIC took its place; ztcp_setup --dry-run "
        "shows this host's NICs",
        nic.name, to_string(nic.mac), nic.pci, to_string(mac));
    return fail(Errc::kBadConfig, "mac");
  }

  // EAL's memory can't grow, so it is reserved at the first NIC for all NICs that this process may
  // open: those of its GPUs.
  std::vector<const config::Nic*> expected_with(const config::Nic& opened) const {
    std::vector<const config::Nic*> expected{&opened};
    const ProcessGpus gpus = probe_ != nullptr ? probe_() : ProcessGpus{};
    for (const std::size_t i : expected_nics(fabric_.nics, gpus)) {
      const config::Nic& nic = fabric_.nics[i];
      const bool shares_memory =
          nic.driver == opened.driver ||
          (config::is_dpdk_nic(nic.driver) && config::is_dpdk_nic(opened.driver));
      if (shares_memory && nic.name != opened.name) expected.push_back(&nic);
    }
    return expected;
  }

  // Reserves address space only: pages that no NIC uses are never touched.
  link::EalConfig plain_memory(const config::Nic& opened) const {
    std::uint32_t mib = link::kEalBaseMib;
    for (const config::Nic* nic : expected_with(opened)) mib += memif_mib(*nic);
    link::EalConfig out;
    out.memory = link::EalMemory::kPlain;
    out.node_memory_mib = {mib};
    return out;
  }

  // The number of lanes in the transport's plan.
  std::uint16_t queues_of(const config::Nic& nic) const {
    const auto index = static_cast<std::size_t>(&nic - fabric_.nics.data());
    return static_cast<std::uint16_t>(
        plan::plan_device(plan::facts_of(fabric_, index), cpus_, fabric_.poller).lanes.size());
  }

  link::XdpConfig xdp_config(const config::Nic& nic, const NicSlot& slot) const {
    link::XdpConfig out;
    out.interface = nic.interface;
    out.address = nic.address.address;
    out.listen_port = fabric_.messages.listen_port;
    out.slot = slot;
    out.first_port = nic.first_port;
    out.last_port = nic.last_port;
    out.mtu_bytes = nic.mtu_bytes;
    out.lanes = queues_of(nic);
    out.pin_folder = config::xdp_pin_folder(nic.interface);
    return out;
  }

  link::Mlx5Config mlx5_config(const config::Nic& nic) const {
    link::Mlx5Config out;
    out.eal = hugepage_memory(nic);
    out.interface = nic.interface;
    out.steering = {.address = nic.address.address,
                    .listen_port = fabric_.messages.listen_port,
                    .first_port = nic.first_port,
                    .last_port = nic.last_port};
    out.mtu_bytes = nic.mtu_bytes;
    out.numa_node = nic.numa_node;
    out.queues = queues_of(nic);
    out.fewer_queues_will_do = nic.queues == config::kAutoQueues;
    out.rx_frames = hugepage::receive_frames(out.queues);
    out.counts_drops = stats::process_page() != nullptr;
    return out;
  }

  link::PciConfig pci_config(const config::Nic& nic) const {
    link::PciConfig out;
    out.address = nic.pci;
    out.mtu_bytes = nic.mtu_bytes;
    out.vlan_id = nic.vlan_id;
    out.is_ipv6 = !nic.address.address.is_v4();
    out.numa_node = nic.numa_node;
    out.queues = queues_of(nic);
    out.fewer_queues_will_do = nic.queues == config::kAutoQueues;
    out.rx_frames = hugepage::receive_frames(out.queues);
    // Without an IOMMU the kernel may move user pages under the device.
    out.counts_drops = stats::process_page() != nullptr;
    out.device_reads_user_memory = fabric_.host.host_class == config::HostClass::kIommu;
    return out;
  }

  // Hugepages for NICs with a driver of DPDK, on the NUMA node of each, at most per_process_mib for
  // each GPU.
  link::EalConfig hugepage_memory(const config::Nic& opened) const {
    link::EalConfig out;
    out.memory = link::EalMemory::kHugepages;
    out.iova = fabric_.host.host_class == config::HostClass::kNoIommu ? link::IovaMode::kPhysical
                                                                      : link::IovaMode::kVirtual;
    out.node_memory_mib.clear();
    std::vector<hugepage::NicNeed> nics;
    for (const config::Nic* nic : expected_with(opened))
      nics.push_back({nic->numa_node, nic->mtu_bytes, gpu_of(*nic), queues_of(*nic)});
    // `ztcp_setup --check` compares the same numbers with the machine.
    for (const hugepage::NodeNeed& need : hugepage::process_needs(
             nics, fabric_.hugepages.per_process_mib, fabric_.hugepages.page_kib)) {
      out.node_memory_mib.resize(static_cast<std::size_t>(need.node) + 1);
      out.node_memory_mib.back() = need.mib;
    }
    return out;
  }

  const config::Fabric fabric_;
  const config::CpuShare cpus_;
  mutable config::LiveMachine machine_;
  const GpuProbe probe_;
  std::set<std::string> has_room_for_;  // Names of NICs; filled by the first open().
};

}  // namespace

Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          const config::CpuShare& cpus, GpuProbe probe) {
  return create(fabric, cpus, probe, std::make_shared<DpdkNics>(fabric, cpus, probe));
}

}  // namespace ztcp::ustack
