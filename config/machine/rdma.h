// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// RDMA devices as sysfs shows them, without opening one: their ports, and where each is found. What
// a process really gets of them, and by which rule, is transport/verbs' to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/machine/machine.h"
#include "transport/core/gid.h"

namespace ztcp::config {

inline constexpr const char* kRdmaDevices = "/sys/class/infiniband";
// What librdmacm opens.
inline constexpr const char* kManagerNode = "/dev/infiniband/rdma_cm";

// What a device speaks: queue pairs that two ends agree upon are kAdapter's, those of kIwarp go
// over TCP connections, which librdmacm has it make.
enum class RdmaKind : std::uint8_t { kAdapter, kIwarp, kOther };

struct RdmaPort {
  std::string device;  // "mlx5_0"
  std::uint16_t port = 1;
  RdmaKind kind = RdmaKind::kAdapter;
  bool is_infiniband = false;    // Else Ethernet.
  std::string state;             // "ACTIVE", "DOWN"; empty: there is no such port.
  std::uint32_t speed_mbps = 0;  // 0: not told.
  std::vector<GidEntry> gids;    // Those that are set; iWARP has none.
  std::string interface;         // "eth1"; empty: none is known.
  std::string pci;               // "0000:17:00.0"; empty: it is of software.
  std::int32_t numa_node = -1;

  const char* network() const {
    if (kind == RdmaKind::kIwarp) return "iWARP";
    return is_infiniband ? "InfiniBand" : "Ethernet";
  }
  bool is_active() const { return state == "ACTIVE"; }
  friend bool operator==(const RdmaPort&, const RdmaPort&) = default;
};

// By PCI address, then by name and port, so that equal hosts have equal orders; those of software
// last.
std::vector<RdmaPort> rdma_ports(Machine& machine);
RdmaPort read_rdma_port(Machine& machine, const std::string& device, std::uint16_t port);

// "100 Gb/sec (4X EDR)", as sysfs has a port's rate; 0: it is no such.
std::uint32_t rate_mbps(const std::string& rate);

// "/dev/infiniband/uverbs0", which who uses the device opens; empty: the kernel has none for it.
std::string uverbs_node(Machine& machine, const std::string& device);

// So much a process may lock at least where NCCL is to have all it wants, of eight GPUs and
// channels to many peers: sessions with the usual 8 MiB fail at their first connections.
inline constexpr std::uint64_t kEnoughForRdmaBytes = 4ULL << 30;

// Payload of a packet over an Ethernet interface of this MTU, which the kernel chooses: the largest
// step that fits beside RoCE's longest headers.
std::uint32_t roce_payload_bytes(std::uint32_t mtu_bytes);
inline constexpr std::uint32_t kLargestRocePayload = 4096;
inline constexpr std::uint32_t kMtuForLargestPayload = 4200;

// The kernel module that makes an RDMA device of the NICs of this driver; empty: none does.
std::string_view rdma_module_of(std::string_view nic_driver);

}  // namespace ztcp::config
