// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// RDMA devices as sysfs shows them, without opening one: their ports, and the place of each.
// transport/verbs decides how a process uses them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/machine/machine.h"
#include "core/gid.h"

namespace ztcp::config {

inline constexpr const char* kRdmaDevices = "/sys/class/infiniband";
// Opened by librdmacm.
inline constexpr const char* kManagerNode = "/dev/infiniband/rdma_cm";

// The protocol of a device. kAdapter: the two ends negotiate queue pairs themselves. kIwarp: queue
// pairs run over TCP connections, which librdmacm makes the device open.
enum class RdmaKind : std::uint8_t { kAdapter, kIwarp, kOther };

struct RdmaPort {
  std::string device;  // "mlx5_0"
  std::uint16_t port = 1;
  RdmaKind kind = RdmaKind::kAdapter;
  bool is_infiniband = false;    // Else Ethernet.
  std::string state;             // "ACTIVE", "DOWN"; empty: no such port.
  std::uint32_t speed_mbps = 0;  // 0: unknown.
  std::vector<GidEntry> gids;    // Those that are set; empty for iWARP.
  std::string interface;         // "eth1"; empty: unknown.
  std::string pci;               // "0000:17:00.0"; empty: a software device.
  std::int32_t numa_node = -1;

  const char* network() const {
    if (kind == RdmaKind::kIwarp) return "iWARP";
    return is_infiniband ? "InfiniBand" : "Ethernet";
  }
  bool is_active() const { return state == "ACTIVE"; }
  friend bool operator==(const RdmaPort&, const RdmaPort&) = default;
};

// Sorted by PCI address, name and port, so that equal hosts have equal orders; software devices
// last.
std::vector<RdmaPort> rdma_ports(Machine& machine);
RdmaPort read_rdma_port(Machine& machine, const std::string& device, std::uint16_t port);

// Parses a port's rate in sysfs, "100 Gb/sec (4X EDR)"; 0: malformed.
std::uint32_t rate_mbps(const std::string& rate);

// The file that users of the device open, "/dev/infiniband/uverbs0"; empty: the kernel has none.
std::string uverbs_node(Machine& machine, const std::string& device);

// Locked memory that a process needs at least for NCCL with eight GPUs and channels to many peers:
// with the usual 8 MiB its first connections fail.
inline constexpr std::uint64_t kEnoughForRdmaBytes = 4ULL << 30;

// Payload of a RoCE packet over an Ethernet interface of this MTU, as the kernel chooses it: the
// largest step that fits beside RoCE's longest headers.
std::uint32_t roce_payload_bytes(std::uint32_t mtu_bytes);
inline constexpr std::uint32_t kLargestRocePayload = 4096;
inline constexpr std::uint32_t kMtuForLargestPayload = 4200;

// The kernel module that makes RDMA devices of NICs with this driver; empty: none.
std::string_view rdma_module_of(std::string_view nic_driver);

}  // namespace ztcp::config
