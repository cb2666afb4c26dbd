// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A link to one process of this machine through memory that both map: a frame is copied once, into
// a slot (shm_ring.h), and read in place until it is released. Its header is copied out first, so
// that the checked bytes are the bytes used.
//
// Frames never leave the memory of the machine, which has its own protection against damage; so
// they carry no checksums, and both ends agree on that when they meet (shm_meeting.h); a process
// that does not is refused. Nothing is lost or reordered while both live. Frames that a peer sent
// before it ended are received after its end.
//
// Owned and used by one thread, except map_memory() and unmap_memory().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/link/link.h"

namespace ztcp::link {

struct ShmConfig {
  std::string socket_path;  // The two find each other by it; unique to this pair.
  bool server = false;      // Makes the socket and the memory.
  MacAddress mac;
  MacAddress peer_mac;
  std::uint16_t mtu_bytes = 1500;  // The same at both ends.
  std::uint32_t slots = 0;         // Each way, a power of two; 0: so that they hold about 1 MiB.
};

// A client may be opened before its server: it is down and looks for one, also after it has lost
// one.
Result<std::unique_ptr<Link>> open_shm(const ShmConfig& config);

// The other end of one port of a mesh.
struct ShmPeer {
  MacAddress mac;
  std::string socket_path;
  bool serves = false;  // This side makes the socket.
};

// A mesh of links to each peer (mesh_link.h). Uses the MAC, the MTU and the slots of `nic`.
// `longest_sleep`: of a healthy peer.
Result<std::unique_ptr<Link>> open_shm_mesh(const ShmConfig& nic, const std::vector<ShmPeer>& peers,
                                            Duration longest_sleep = {});

}  // namespace ztcp::link
