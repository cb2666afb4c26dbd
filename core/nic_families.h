// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The NIC families that ztcp knows: the only list. transport/link/meson.build reads the DPDK
// drivers to link in, set-up the kernel's drivers, --check the ids and MTUs, the link the
// properties; a test compares the table in docs/choose.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ztcp {

// How ztcp gets at the NICs of a family.
enum class NicAccess : std::uint8_t {
  kTaken,       // ztcp's DPDK driver replaces the kernel's, where the distribution has it.
  kBifurcated,  // The kernel's driver keeps its NICs beside DPDK's, if that is linked in.
  kKernel,      // Through the kernel's driver alone: AF_XDP or kernel sockets.
  kSockets,     // Kernel sockets alone.
  kRdma,        // As an RDMA device: a function beside that of the NIC.
};

struct NicFamily {
  std::string_view name;
  NicAccess access = NicAccess::kKernel;
  // DPDK's name of the driver. Empty: there is none in this plugin.
  std::string_view dpdk_driver = "";
  std::string_view kernel_driver;
  std::string_view other_kernel_driver = "";
  // The kernel module that makes RDMA devices of such NICs; empty: none, or the driver itself.
  std::string_view rdma_module = "";
  // PCI ids, "1d0f:ec20", separated by blanks: for families that have checks of their own.
  std::string_view pci_ids = "";
  std::string_view found_in;
  // The largest MTU of the cloud's network; 0: the network's own.
  std::uint16_t cloud_mtu_bytes = 0;
  // Whether ztcp's link ran on such a NIC, though an emulated one.
  bool ran_emulated = false;
  // Reports the speed of a wire. All others may be faster than they report: software, which invents
  // a speed (vmxnet3 says 10 Gb/s), and functions of a NIC that reach each other inside it.
  bool reports_wire_speed = false;
  // Spreads received packets over its queues, but does not tell how.
  bool spreads_untold = false;
  // Drops frames for which its ring of this many is full, and counts them as sent: the ring is used
  // whole, for it has no more buffers. 0: the link's own size.
  std::uint16_t dropping_ring_frames = 0;
  // Its own limit of pieces of a super-segment, which DPDK before 24.03 neither reports nor checks.
  std::uint16_t most_super_segments = UINT16_MAX;
};

inline constexpr std::array kNicFamilies = {
    NicFamily{
        .name = "virtio-net",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_virtio",
        .kernel_driver = "virtio-pci",
        .pci_ids = "1af4:1000 1af4:1041",
        .found_in = "Tencent, Alibaba, KVM",
        .ran_emulated = true,
        .spreads_untold = true,
    },
    NicFamily{
        .name = "ENA",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_ena",
        .kernel_driver = "ena",
        .pci_ids = "1d0f:0ec2 1d0f:1ec2 1d0f:ec20 1d0f:ec21",
        .found_in = "AWS",
        .cloud_mtu_bytes = 9001,
    },
    NicFamily{
        .name = "gVNIC",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_gve",
        .kernel_driver = "gvnic",
        .other_kernel_driver = "gve",
        .pci_ids = "1ae0:0042",
        .found_in = "Google",
        .cloud_mtu_bytes = 8896,
        .spreads_untold = true,
    },
    NicFamily{
        .name = "Intel VF",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_iavf",
        .kernel_driver = "iavf",
        .found_in = "VMs with VFs",
    },
    NicFamily{
        .name = "Intel E800",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_ice",
        .kernel_driver = "ice",
        .rdma_module = "irdma",
        .found_in = "bare metal",
        .reports_wire_speed = true,
    },
    NicFamily{
        .name = "Intel 700",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_i40e",
        .kernel_driver = "i40e",
        .found_in = "bare metal",
        .reports_wire_speed = true,
    },
    NicFamily{
        .name = "Intel 82599, X500",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_ixgbe",
        .kernel_driver = "ixgbe",
        .found_in = "bare metal",
        .reports_wire_speed = true,
    },
    NicFamily{
        .name = "Intel 1G",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_e1000",
        .kernel_driver = "e1000e",
        .other_kernel_driver = "igb",
        .found_in = "bare metal",
        .ran_emulated = true,
    },
    NicFamily{
        .name = "Broadcom NetXtreme",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_bnxt",
        .kernel_driver = "bnxt_en",
        .rdma_module = "bnxt_re",
        .found_in = "bare metal",
    },
    NicFamily{
        .name = "vmxnet3",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_vmxnet3",
        .kernel_driver = "vmxnet3",
        .found_in = "VMware",
        .ran_emulated = true,
        .dropping_ring_frames = 4096,
        .most_super_segments = 24,
    },
    NicFamily{
        .name = "HiSilicon",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_hns3",
        .kernel_driver = "hns3",
        .rdma_module = "hns_roce_hw_v2",
        .found_in = "bare metal",
        .reports_wire_speed = true,
    },
    NicFamily{
        .name = "Intel E2000",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_idpf",
        .kernel_driver = "idpf",
        .found_in = "Google bare metal",
    },
    NicFamily{
        .name = "AMD Pensando",
        .access = NicAccess::kTaken,
        .dpdk_driver = "net_ionic",
        .kernel_driver = "ionic",
        .rdma_module = "ionic_rdma",
        .found_in = "bare metal",
    },
    NicFamily{
        .name = "ConnectX-4 and later",
        .access = NicAccess::kBifurcated,
        .dpdk_driver = "net_mlx5",
        .kernel_driver = "mlx5_core",
        .rdma_module = "mlx5_ib",
        .found_in = "Azure VFs, Oracle, bare metal",
    },
    NicFamily{
        .name = "ConnectX-3",
        .access = NicAccess::kBifurcated,
        .kernel_driver = "mlx4_core",
        .rdma_module = "mlx4_ib",
        .found_in = "bare metal",
    },
    NicFamily{
        .name = "MANA",
        .access = NicAccess::kBifurcated,
        .kernel_driver = "mana",
        .rdma_module = "mana_ib",
        .found_in = "Azure",
    },
    NicFamily{
        .name = "netvsc",
        .access = NicAccess::kSockets,
        .kernel_driver = "hv_netvsc",
        .found_in = "Azure, Hyper-V",
    },
    NicFamily{
        .name = "QLogic FastLinQ",
        .kernel_driver = "qede",
        .rdma_module = "qedr",
        .found_in = "bare metal",
    },
    NicFamily{
        .name = "eRDMA",
        .access = NicAccess::kRdma,
        .kernel_driver = "erdma",
        .found_in = "Alibaba",
        .cloud_mtu_bytes = 8500,
    },
};

constexpr const NicFamily* find_nic_family(std::string_view NicFamily::*column,
                                           std::string_view value) {
  for (const NicFamily& family : kNicFamilies)
    if (!value.empty() && family.*column == value) return &family;
  return nullptr;
}

// Null: a driver of the kernel that ztcp does not know.
constexpr const NicFamily* family_of_kernel_driver(std::string_view driver) {
  const NicFamily* const found = find_nic_family(&NicFamily::kernel_driver, driver);
  return found != nullptr ? found : find_nic_family(&NicFamily::other_kernel_driver, driver);
}

// Null: another driver of DPDK, memif's for example.
constexpr const NicFamily* family_of_dpdk_driver(std::string_view driver) {
  return find_nic_family(&NicFamily::dpdk_driver, driver);
}

// The kernel's driver of the NICs that driver = "mlx5" in a config is for.
inline constexpr std::string_view kMlx5KernelDriver =
    family_of_dpdk_driver("net_mlx5")->kernel_driver;

// `pci_id` as in "1d0f:ec20". Null: no family has it in its row.
constexpr const NicFamily* family_of_pci_id(std::string_view pci_id) {
  for (const NicFamily& family : kNicFamilies)
    if (!pci_id.empty() && family.pci_ids.find(pci_id) != std::string_view::npos) return &family;
  return nullptr;
}

}  // namespace ztcp
