// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <bit>

#include "transport/link/dpdk_link.h"
#include "transport/link/mesh_link.h"

namespace ztcp::link {
namespace {

// Of many memifs each gets its share of the cache and of the memory that one would have had, but
// enough for a few bursts: that many frames a ring, and receive buffers beside what a burst takes.
constexpr std::uint32_t kRingBytes = 4U << 20;
constexpr std::uint32_t kLeastRingFrames = 64;
constexpr std::uint32_t kPoolBytes = 48U << 20;
constexpr std::uint32_t kLeastPoolFrames = 512;

MemifConfig one_port(const MemifConfig& nic, std::size_t memifs) {
  const auto share = [&](std::uint32_t bytes, std::uint32_t least, std::uint32_t most) {
    const auto frames =
        static_cast<std::uint32_t>(bytes / memifs / std::max(nic.mtu_bytes, std::uint16_t{2048}));
    return std::clamp(frames, least, most);
  };
  MemifConfig port = nic;
  port.ring_size_log2 =
      static_cast<std::uint8_t>(std::bit_width(share(kRingBytes, kLeastRingFrames, 1024)) - 1);
  port.rx_frames = share(kPoolBytes, kLeastPoolFrames, 4096) - 1;
  return port;
}

}  // namespace

std::uint32_t memif_mesh_memory_mib(const MemifConfig& nic, std::size_t peers, std::size_t queues) {
  const std::size_t memifs = peers * queues;
  return static_cast<std::uint32_t>(memifs) * memif_memory_mib(one_port(nic, memifs));
}

Result<std::unique_ptr<Link>> open_memif_mesh(const MemifConfig& nic,
                                              const std::vector<MemifPeer>& peers,
                                              std::size_t queues) {
  std::vector<MeshPort> ports;
  for (const MemifPeer& peer : peers) {
    MemifConfig port = one_port(nic, peers.size() * queues);
    port.socket_path = peer.socket_path;
    port.role = peer.role;
    ports.push_back({peer.mac, ZTCP_TRY(open_memif(port))});
  }
  return make_mesh(std::move(ports));
}

}  // namespace ztcp::link
