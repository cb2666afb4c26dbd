// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs with memif_role = "mesh" and the same memif_socket are connected pairwise by shared memory,
// without a switch. The file names the mesh once; the names of two NICs give the name of their
// connection, equal on both sides.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace ztcp::config {

struct MeshPeer {
  const Nic* nic = nullptr;
  // One socket per queue of this pair: "<memif_socket>+ztcp0+ztcp1+0", "...+1".
  std::vector<std::string> sockets;
  bool serves = false;  // This side creates them.
};

bool is_mesh(const Nic& nic);

// In the file's order; empty when `nic` is in no mesh, or alone in it.
std::vector<MeshPeer> mesh_peers(const Fabric& fabric, const Nic& nic);

}  // namespace ztcp::config
