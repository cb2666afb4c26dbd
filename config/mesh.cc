// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/mesh.h"

#include <algorithm>

#include <fmt/format.h>

namespace ztcp::config {
namespace {

bool is_of_mesh(const Nic& nic) {
  return nic.driver == NicDriver::kMemif && nic.memif_role == MemifRole::kMesh;
}

}  // namespace

std::vector<MeshPort> mesh_ports(const Fabric& fabric, const Nic& nic) {
  std::vector<MeshPort> ports;
  if (!is_of_mesh(nic)) return ports;
  for (const Nic& peer : fabric.nics) {
    if (!is_of_mesh(peer) || peer.name == nic.name || peer.memif_socket != nic.memif_socket)
      continue;
    const bool serves = nic.name < peer.name;
    MeshPort port{&peer, {}, serves};
    const auto& [first, second] = std::minmax(nic.name, peer.name);
    // No name has a plus, so that no two of these are alike.
    for (std::uint32_t queue = 0; queue < nic.queues; ++queue)
      port.sockets.push_back(fmt::format("{}+{}+{}+{}", nic.memif_socket, first, second, queue));
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace ztcp::config
