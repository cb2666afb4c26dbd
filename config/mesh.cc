// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/mesh.h"

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
    const std::string first = fmt::format(
        "{}-{}-{}", nic.memif_socket, serves ? nic.name : peer.name, serves ? peer.name : nic.name);
    for (std::uint32_t queue = 0; queue < nic.queues; ++queue)
      port.sockets.push_back(queue == 0 ? first : fmt::format("{}-{}", first, queue));
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace ztcp::config
