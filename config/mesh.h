// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs with memif_role = "mesh" and the same memif_socket are joined each to each by shared memory
// of their own, without a switch. The file names the mesh once; what joins two of its NICs follows
// from their names, alike on both sides.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace ztcp::config {

struct MeshPeer {
  const Nic* nic = nullptr;
  // One for each queue, the pair's own: "<memif_socket>+ztcp0+ztcp1+0", "...+1".
  std::vector<std::string> sockets;
  bool serves = false;  // This side makes them.
};

bool is_mesh(const Nic& nic);

// In the file's order; empty when `nic` is of no mesh, or alone in it.
std::vector<MeshPeer> mesh_peers(const Fabric& fabric, const Nic& nic);

}  // namespace ztcp::config
