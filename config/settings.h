// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The fabric config as plain values, which load() reads from ztcp.conf.
// Defaults are initializers here; keys, units and meanings are in schema.toml, from which the man
// page is generated. A test compares the two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/address.h"

namespace ztcp::config {

inline constexpr std::uint32_t kSchemaVersion = 1;
inline constexpr const char* kDefaultPath = "/usr/local/tfabric/tools/config/ztcp.conf";
inline constexpr const char* kDefaultRunDir = "/usr/local/tfabric/tools/run";

// The driver of a NIC: pci = a DPDK port on vfio; memif = shared memory to a switch or peer process
// on this machine; tap = a tun/tap descriptor; xdp = AF_XDP sockets on an interface that stays with
// the kernel; mlx5 = a DPDK port beside the kernel's interface; socket = an interface that stays
// with the kernel, over its TCP; verbs = an RDMA device.
enum class NicDriver : std::uint8_t { kPci, kMemif, kTap, kXdp, kMlx5, kSocket, kVerbs };
// A port of DPDK for a NIC: its frames are in hugepages, and each of its queues is a lane.
constexpr bool is_dpdk_nic(NicDriver driver) {
  return driver == NicDriver::kPci || driver == NicDriver::kMlx5;
}
// ztcp's own TCP on an interface that stays with the kernel: with the host's address, routes and
// neighbours, and ports of its own.
constexpr bool is_past_kernel(NicDriver driver) {
  return driver == NicDriver::kXdp || driver == NicDriver::kMlx5;
}
enum class MemifRole : std::uint8_t { kServer, kClient, kMesh };
enum class HostClass : std::uint8_t { kIommu, kNoIommu, kUnprivileged };  // A, B, C.
enum class PollerMode : std::uint8_t { kAuto, kDedicated, kShared };
enum class OnOff : std::uint8_t { kAuto, kOn, kOff };
enum class Ecn : std::uint8_t { kOn, kOff };
enum class CollnetWire : std::uint8_t { kF32, kBf16, kFp8 };
enum class CongestionControl : std::uint8_t { kAuto, kCubic, kDctcp, kBbr, kSwift };
inline constexpr std::array<std::string_view, 5> kCongestionControlNames{"auto", "cubic", "dctcp",
                                                                         "bbr", "swift"};

struct Host {
  std::string machine_id;  // /etc/machine-id when the file was written; empty: not checked.
  std::string hostname;
  HostClass host_class = HostClass::kUnprivileged;
  std::string user;   // User allowed to run jobs here, beside root; empty: none.
  std::string group;  // Group allowed to; empty: none.
  friend bool operator==(const Host&, const Host&) = default;
};

// `gateway = "auto"`: a router that advertises itself (RFC 4861). No host has this address.
inline constexpr IpAddress kAutoGateway{};
inline std::string gateway_text(IpAddress gateway) {
  return gateway == kAutoGateway ? "auto" : to_string(gateway);
}

// `address = "auto"`: taken from a router's advertisement (RFC 4862). No text has this length.
inline constexpr IpPrefix kAutoAddress{IpAddress(), 255};
inline std::string address_text(const IpPrefix& address) {
  return address == kAutoAddress ? "auto" : to_string(address);
}

struct Nic {
  std::string name;  // Device name shown by NCCL: "ztcp0".
  NicDriver driver = NicDriver::kMemif;
  std::string pci;            // "0000:3b:00.0"; pci only.
  std::string kernel_driver;  // Driver before set-up: "virtio-pci".
  MacAddress mac;             // For pci, memif and tap, like gateway and VLAN.
  IpPrefix address;
  std::optional<IpAddress> gateway;
  std::uint16_t vlan_id = 0;
  std::int16_t vlan_priority = -1;  // -1: by the DSCP.
  std::uint16_t dscp = 0;           // For those drivers and sockets.
  std::uint16_t mtu_bytes = 1500;
  std::int32_t numa_node = -1;   // -1: unknown.
  std::uint32_t speed_mbps = 0;  // 0: unknown.
  std::string gpu_pci;           // GPU it is paired with; empty: any process may take it.
  std::string gpu_uuid;
  std::int32_t rail = -1;   // Network's number on all hosts; -1: place among the devices.
  std::int32_t plane = -1;  // Plane of that network; -1: not told.
  // memif
  std::string memif_socket;  // Path; relative to the config file's folder.
  MemifRole memif_role = MemifRole::kClient;
  std::uint32_t memif_id = 0;
  std::uint32_t queues = 1;        // kAutoQueues: by its speed and the CPUs; pci and mlx5.
  std::uint32_t nccl_devices = 0;  // NCCL devices it is exposed as; 0: automatic. Not verbs.
  // tap
  std::string tap_interface;
  std::uint16_t processes = 1;  // Of this host that share it; xdp only.
  // socket, xdp and mlx5
  std::string interface;  // "eth1"; without a config perhaps an address's label: "eth1:2".
  // socket and verbs: the ports on which processes of this host listen; 0, never in a file: any.
  // xdp and mlx5: the source ports of its connections.
  std::uint16_t first_port = 7472;
  std::uint16_t last_port = 7535;
  // verbs
  std::string device;  // "mlx5_0"
  std::uint16_t device_port = 1;
  std::int16_t gid_index = -1;      // -1: automatic.
  std::int16_t traffic_class = -1;  // -1: NCCL's.
  // -1, 0 queue pairs and "auto": from NCCL's own variables (verbs/nccl_variables.h).
  std::int16_t service_level = -1;
  std::int16_t ack_timeout = -1;
  std::int16_t retries = -1;
  std::int16_t rnr_retries = -1;
  std::int32_t pkey_index = -1;
  std::uint16_t queue_pairs = 0;
  OnOff relaxed_ordering = OnOff::kAuto;
  std::int32_t adaptive_routing_threshold_bytes = -1;
  std::string merge;  // NICs with the same word are one device; empty: not merged.
  friend bool operator==(const Nic&, const Nic&) = default;
};

// The speed that NCCL is told; if unknown, the one that NCCL itself assumes.
inline constexpr std::uint32_t kGuessedSpeedMbps = 10000;
constexpr std::uint32_t told_speed_mbps(const Nic& nic) {
  return nic.speed_mbps != 0 ? nic.speed_mbps : kGuessedSpeedMbps;
}

// The name of the NCCL device that it belongs to, alone or merged.
inline const std::string& device_name(const Nic& nic) {
  return nic.merge.empty() ? nic.name : nic.merge;
}

// A kernel NIC that is merged, with others or with RDMA devices: a rail.
inline bool is_merged_socket(const Nic& nic) {
  return nic.driver == NicDriver::kSocket && !nic.merge.empty();
}

// `queues = "auto"` for a NIC on PCI: by its speed and the CPUs (plan::plan_device).
inline constexpr std::uint32_t kAutoQueues = 0;

struct Hugepages {
  std::uint32_t page_kib = 0;            // 1048576 or 2048; 0: none (memif, tap).
  std::uint32_t per_process_mib = 5120;  // Upper bound per GPU that a process drives.
  std::uint32_t spare_mib = 10240;       // Host's reserve beside per_process_mib of each NIC.
  friend bool operator==(const Hugepages&, const Hugepages&) = default;
};

struct Messages {
  std::uint16_t listen_port = 7471;
  std::uint32_t flows = 0;  // 0: as many as the transport can use.
  std::uint32_t multi_flow_threshold_kib = 128;
  std::uint32_t eager_allowance_kib = 128;
  std::uint32_t max_chunk_kib = 256;
  std::uint32_t handshake_timeout_ms = 10000;
  std::uint32_t redial_window_ms = 7000;
  std::uint32_t redial_attempt_ms = 1500;
  std::uint32_t max_redials = 3;
  std::uint32_t drain_timeout_ms = 2000;
  std::string cluster_key;               // 64 hex digits; empty: no authentication.
  std::string watch_interface = "auto";  // "off", or a name.
  friend bool operator==(const Messages&, const Messages&) = default;
};

inline constexpr std::uint32_t kMostConnections = 32768;
inline constexpr std::uint32_t kAutoConnections = 0;  // See connections_of_nic().

struct Tcp {
  std::uint32_t rto_min_us = 5000;
  std::uint32_t connect_timeout_ms = 20000;
  std::uint32_t user_timeout_ms = 8000;
  std::uint32_t keepalive_idle_ms = 3000;
  std::uint32_t keepalive_interval_ms = 1500;
  std::uint32_t receive_window_kib = 16384;
  std::uint32_t max_connections = kAutoConnections;  // Per NIC; see connections_of_nic().
  bool pacing = true;
  bool reroute = true;
  Ecn ecn = Ecn::kOn;
  CongestionControl congestion_control = CongestionControl::kCubic;
  std::string kernel_congestion_control;  // Empty: the kernel's choice.
  friend bool operator==(const Tcp&, const Tcp&) = default;
};

// The number of NCCL connections that a NIC accepts, sends and receives together: the config's
// value, else the largest that costs nothing with its driver. A NIC that a process drives itself
// reserves memory for all of them (0.6 GiB of address space at an MTU of 9000), kernel sockets for
// none. Equal configs give equal numbers on all hosts.
constexpr std::uint32_t connections_of_nic(const Tcp& tcp, NicDriver driver) {
  constexpr std::uint32_t kReserved = 4096;
  if (tcp.max_connections != kAutoConnections) return tcp.max_connections;
  return driver == NicDriver::kSocket ? kMostConnections : kReserved;
}

struct Poller {
  PollerMode mode = PollerMode::kAuto;
  std::uint32_t spin_us = 50;         // Polls this long without work before it yields.
  std::uint32_t max_sleep_us = 1000;  // Longest sleep when idle.
  std::vector<std::uint32_t> cpus;    // Empty: chosen near the NIC within the process's mask.
  std::int32_t workers = -1;          // Per NIC; -1: as many as there are spare CPUs.
  friend bool operator==(const Poller&, const Poller&) = default;
};

struct Statistics {
  bool page = true;  // Each process publishes a statistics page.
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// Slow and stalled messages (transport/stats/message_monitor.h).
struct Monitor {
  bool enabled = true;
  std::uint32_t slow_factor = 20;
  std::uint32_t slow_min_ms = 200;
  std::uint32_t stalled_ms = 10000;
  friend bool operator==(const Monitor&, const Monitor&) = default;
};

// All-reduce inside this library, NCCL's CollNet. All hosts need the same.
struct Collnet {
  bool enabled = false;
  CollnetWire wire = CollnetWire::kF32;  // The form of large sums of floats between hosts.
  friend bool operator==(const Collnet&, const Collnet&) = default;
};

struct Fabric {
  std::uint32_t schema = kSchemaVersion;
  std::string name;                      // The fabric's name; hosts of one job must agree.
  std::string path;                      // Path of the file; empty: none. Not a key.
  std::string chosen_by;                 // The NICs' source, if not the file. Not a key.
  std::string run_dir = kDefaultRunDir;  // Locks; relative to the config's folder.
  bool tunes_channels = false;           // This library chooses NCCL's channels. Not a key.
  Host host;
  Hugepages hugepages;
  Messages messages;
  Tcp tcp;
  Poller poller;
  Statistics statistics;
  Monitor monitor;
  Collnet collnet;
  std::vector<Nic> nics;  // In device order.
  const std::string& who_chose() const { return chosen_by.empty() ? path : chosen_by; }
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

}  // namespace ztcp::config
