// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/mesh.h"

#include <algorithm>

#include <fmt/format.h>

namespace ztcp::config {

bool is_mesh(const Nic& nic) {
  return nic.driver == NicDriver::kMemif && nic.memif_role == MemifRole::kMesh;
}

std::vector<MeshPeer> mesh_peers(const Fabric& fabric, const Nic& nic) {
  std::vector<MeshPeer> peers;
  if (!is_mesh(nic)) return peers;
  for (const Nic& other : fabric.nics) {
    if (!is_mesh(other) || other.name == nic.name || other.memif_socket != nic.memif_socket)
      continue;
    const bool serves = nic.name < other.name;
    MeshPeer peer{&other, {}, serves};
    const auto& [first, second] = std::minmax(nic.name, other.name);
    // Names contain no plus, so all results differ.
    for (std::uint32_t queue = 0; queue < nic.queues; ++queue)
      peer.sockets.push_back(fmt::format("{}+{}+{}+{}", nic.memif_socket, first, second, queue));
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace ztcp::config
