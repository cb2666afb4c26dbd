// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_config.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <functional>
#include <sys/random.h>

#include "config/mesh.h"
#include "core/pci_path.h"
#include "transport/comms/session_config.h"
#include "transport/plan/nccl_devices.h"
#include "transport/tcp/auto_control.h"
#include "transport/tcp/bbr.h"
#include "transport/tcp/cubic.h"
#include "transport/tcp/dctcp.h"
#include "transport/tcp/swift.h"

namespace ztcp::ustack {
namespace {

void set_congestion_control(config::CongestionControl chosen, tcp::TcpSettings& tcp) {
  switch (chosen) {
    case config::CongestionControl::kAuto:
      tcp.congestion_control = tcp::make_congestion_control<tcp::AutoControl>;
      tcp.congestion_control_by_marks = tcp::make_auto_control_by_marks;
      break;
    case config::CongestionControl::kCubic:
      tcp.congestion_control = tcp::make_congestion_control<tcp::Cubic>;
      break;
    case config::CongestionControl::kDctcp:
      tcp.congestion_control_by_marks = tcp::make_congestion_control<tcp::Dctcp>;
      break;
    case config::CongestionControl::kBbr:
      tcp.congestion_control = tcp::make_congestion_control<tcp::Bbr>;
      break;
    case config::CongestionControl::kSwift:
      tcp.congestion_control = tcp::make_congestion_control<tcp::Swift>;
      break;
  }
}

}  // namespace

Result<EngineConfig> engine_config(const config::Fabric& fabric, const config::Nic& nic,
                                   const link::LinkCapabilities& link) {
  const auto ms = [](std::uint32_t n) { return std::chrono::milliseconds(n); };
  EngineConfig out;
  out.stack.mac = link.mac;
  out.stack.finds_address = nic.address == config::kAutoAddress;
  out.stack.address = out.stack.finds_address ? IpPrefix(IpAddress(), 128) : nic.address;
  out.stack.gateway = nic.gateway.value_or(IpAddress());
  out.stack.finds_router = nic.gateway == config::kAutoGateway;
  if (config::is_past_kernel(nic.driver)) {
    // Every destination counts as a neighbour: the link answers with the MAC address of the
    // kernel's next hop.
    out.stack.address.length = 0;
    out.stack.ephemeral_port_first = nic.first_port;
    out.stack.ephemeral_port_last = nic.last_port;
  }
  out.stack.vlan_id = nic.vlan_id;
  if (nic.vlan_priority >= 0)
    out.stack.vlan_priority = static_cast<std::uint8_t>(nic.vlan_priority);
  out.stack.dscp = static_cast<std::uint8_t>(nic.dscp);
  out.stack.mtu_bytes = std::min(nic.mtu_bytes, link.mtu_bytes);
  out.stack.tx_checksum_offload = link.tx_checksum;
  out.stack.max_super_segment_bytes = link.max_super_segment_bytes;
  out.session = comms::session_settings(fabric, nic.driver,
                                        std::max<std::size_t>({1, nic.queues, link.shards}));
  out.stack.max_connections = table_places(out.session.max_sessions);
  out.stack.max_held_bytes = link.max_kept_bytes;
  out.stack.max_held_frames = link.max_kept_frames;
  out.stack.shard = {.index = link.shard, .count = link.shards, .spread = link.spread};

  tcp::TcpSettings& tcp = out.stack.tcp;
  tcp.rto_min = std::chrono::microseconds(fabric.tcp.rto_min_us);
  tcp.connect_timeout = ms(fabric.tcp.connect_timeout_ms);
  tcp.user_timeout = ms(fabric.tcp.user_timeout_ms);
  tcp.keepalive_idle = ms(fabric.tcp.keepalive_idle_ms);
  tcp.keepalive_interval = ms(fabric.tcp.keepalive_interval_ms);
  tcp.receive_window_bytes = fabric.tcp.receive_window_kib << 10U;
  tcp.pacing = fabric.tcp.pacing;
  tcp.reroutes = out.session.leaves_bad_paths = fabric.tcp.reroute;
  tcp.ecn = fabric.tcp.ecn == config::Ecn::kOn;
  set_congestion_control(fabric.tcp.congestion_control, tcp);

  out.cluster_key = ZTCP_TRY(comms::cluster_key(fabric));
  out.listen_port = fabric.messages.listen_port;

  if (getrandom(out.secret.data(), sizeof(out.secret), 0) !=
      static_cast<ssize_t>(sizeof(out.secret))) {
    return fail_errno("getrandom");
  }
  return out;
}

int nccl_devices(const config::Fabric& fabric, const config::Nic& nic, bool tunes_channels) {
  return static_cast<int>(plan::nccl_devices({.told = nic.nccl_devices,
                                              .tunes_channels = tunes_channels,
                                              .mesh_peers = config::mesh_peers(fabric, nic).size(),
                                              .mesh_queues = nic.queues}));
}

DeviceProperties device_properties(const config::Fabric& fabric, const config::Nic& nic,
                                   const std::string& sys_root) {
  DeviceProperties out;
  out.name = nic.name;
  if (!nic.pci.empty()) {
    // NCCL walks up from this directory to find the PCI switch and the socket of the NIC.
    char resolved[PATH_MAX];
    const std::string link = sys_root + "/bus/pci/devices/" + nic.pci;
    if (realpath(link.c_str(), resolved) != nullptr) out.pci_path = resolved;
  }
  for (const std::uint8_t byte : nic.mac.bytes) out.guid = out.guid << 8U | byte;
  if (config::is_past_kernel(nic.driver)) {
    out.pci_path = pci_path_of(sys_root, sys_root + "/class/net/" + nic.interface + "/device");
    out.guid = std::hash<std::string>()(nic.interface);
  }
  out.speed_mbps = config::told_speed_mbps(nic);
  out.max_receives = static_cast<int>(kMaxReceives);
  out.nccl_devices = nccl_devices(fabric, nic, fabric.tunes_channels);
  out.host_pointers = true;
  out.mtu_bytes = nic.mtu_bytes;
  out.address = nic.address == config::kAutoAddress ? "auto" : to_string(nic.address.address);
  out.numa_node = nic.numa_node;
  out.gpu = nic.gpu_pci.empty() ? nic.gpu_uuid : nic.gpu_pci;
  return out;
}

}  // namespace ztcp::ustack
