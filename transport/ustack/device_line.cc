// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/device_line.h"

#include <fmt/format.h>

namespace ztcp::ustack {
namespace {

using config::HostClass;
using config::NicDriver;

std::string nic_text(const config::Nic& nic) {
  switch (nic.driver) {
    case NicDriver::kPci:
      return "PCI " + nic.pci;
    case NicDriver::kMemif:
      if (nic.memif_role == config::MemifRole::kMesh) return "mesh " + nic.memif_socket;
      return fmt::format("memif {} {}", nic.memif_socket, nic.memif_id);
    case NicDriver::kTap:
      return "tap " + nic.tap_interface;
    case NicDriver::kMlx5:
      return "mlx5 on " + nic.interface;
    case NicDriver::kXdp:
      return "AF_XDP on " + nic.interface;
    case NicDriver::kSocket:
    case NicDriver::kVerbs:
      break;  // Another transport's.
  }
  return {};
}

std::string speed_text(const config::Nic& nic, const DeviceProperties& device) {
  if (nic.speed_mbps != 0) return fmt::format("{} Mb/s", device.speed_mbps);
  return fmt::format("{} Mb/s (a guess: speed_mbps is 0 in the config{})", device.speed_mbps,
                     nic.driver == NicDriver::kPci ? "; ztcp_setup --speed MBPS states it" : "");
}

std::string gpu_text(const config::Nic& nic) {
  if (!nic.gpu_pci.empty()) return "GPU " + nic.gpu_pci;
  if (!nic.gpu_uuid.empty()) return nic.gpu_uuid;
  return "any GPU";
}

std::string pages_text(const config::Fabric& fabric, const config::Nic& nic) {
  if (!config::is_dpdk_nic(nic.driver) || fabric.hugepages.page_kib == 0) return "no hugepages";
  return fmt::format("{} MiB pages, at most {} MiB for each GPU of a process",
                     fabric.hugepages.page_kib / 1024, fabric.hugepages.per_process_mib);
}

// Zero-copy and kernel bypass, each with the reason where it is off.
std::string path_text(const config::Fabric& fabric, const config::Nic& nic) {
  switch (nic.driver) {
    case NicDriver::kPci:
      if (fabric.host.host_class == HostClass::kIommu) return "kernel bypass, zero-copy send";
      return "kernel bypass; sends copy once: without an IOMMU user pages may move under the NIC";
    case NicDriver::kMemif:
      return "shared memory inside this machine; sends copy once: no NIC reads user memory";
    case NicDriver::kTap:
      return "kernel bypass off: frames go through a tap device, which copies them";
    case NicDriver::kMlx5:
    case NicDriver::kXdp:
      return "kernel bypass for ztcp's TCP ports; the interface stays with the kernel; sends copy "
             "once";
    case NicDriver::kSocket:
    case NicDriver::kVerbs:
      break;
  }
  return {};
}

// Nothing for packets like any other.
std::string marks_text(const config::Nic& nic) {
  std::string out;
  if (nic.vlan_id != 0) out += fmt::format(", VLAN {}", nic.vlan_id);
  if (nic.vlan_priority >= 0) out += fmt::format(" priority {}", nic.vlan_priority);
  if (nic.dscp != 0) out += fmt::format(", DSCP {}", nic.dscp);
  return out;
}

}  // namespace

std::string device_line(const config::Fabric& fabric, const config::Nic& nic,
                        const DeviceProperties& device, const plan::DevicePlan& plan) {
  return fmt::format(
      "{}: userspace TCP, {}, {}, {}, {}, {}, MTU {}{}, {}, {}, {}; {}; GPUDirect RDMA off: "
      "userspace TCP ends in host memory",
      device.name, nic_text(nic), config::address_text(nic.address), speed_text(nic, device),
      gpu_text(nic),
      nic.numa_node < 0 ? "NUMA node unknown" : fmt::format("NUMA node {}", nic.numa_node),
      nic.mtu_bytes, marks_text(nic), plan::lanes_text(plan), plan::helpers_text(plan),
      pages_text(fabric, nic), path_text(fabric, nic));
}

}  // namespace ztcp::ustack
