// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Number of NCCL devices that one NIC or interface is exposed as. NCCL derives its channels from
// it, and some releases do not compare the result between ranks, so the number follows only from
// facts that all hosts of a job share by contract: the config, the transport and whether the tuner
// is on. CPUs, quotas, ranks of the host and the speed that a driver reports have no influence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ztcp::plan {

struct NcclDeviceFacts {
  std::uint32_t told = 0;         // nccl_devices of the config; 0: not set.
  bool tunes_channels = false;    // Fabric::tunes_channels.
  std::size_t interfaces = 0;     // Kernel sockets: interfaces of the fabric; 0: no kernel socket.
  std::size_t mesh_peers = 0;     // Other NICs of the NIC's mesh; 0: no mesh.
  std::uint32_t mesh_queues = 0;  // Mesh: queues of the config.
};

// The interfaces of one host share kMostNcclDevices equally; if the share of each is below
// kLeastNcclDevices, each is exposed as one device.
inline constexpr std::size_t kMostNcclDevices = 8;
inline constexpr std::size_t kLeastNcclDevices = 4;

// 1 to 8. Without the tuner NCCL would spread every collective over the channels of all devices.
inline std::size_t nccl_devices(const NcclDeviceFacts& facts) {
  if (facts.told != 0) return facts.told;
  if (!facts.tunes_channels) return 1;
  if (facts.interfaces != 0) {
    const std::size_t each = kMostNcclDevices / facts.interfaces;
    return each >= kLeastNcclDevices ? each : 1;
  }
  // NCCL gives send/recv two channels for each device, which do not keep many lanes busy
  // (bench/results/nccl-h200-mesh.md). A NIC on PCI is exposed once: more was not measured there,
  // and in a job of many hosts the connections could exceed max_connections.
  if (facts.mesh_peers == 1) return facts.mesh_queues >= 4 ? kMostNcclDevices : 1;
  if (facts.mesh_peers == 0) return 1;
  return facts.mesh_queues >= 3 ? kLeastNcclDevices : std::max<std::size_t>(facts.mesh_queues, 1);
}

}  // namespace ztcp::plan
