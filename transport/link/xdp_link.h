// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Link over AF_XDP: the interface stays with the kernel, and only TCP segments to ztcp's ports
// take the way past it. The address is the host's own, and so are routes and neighbours: the
// stack's ARP and neighbour discovery never reach the wire, but are answered out of the kernel's
// tables.
//
// Copies: a received frame is used where the kernel or the NIC put it; a frame to send is copied
// once, into the socket's packet memory. In copy mode the kernel adds one copy each way; with zero
// copy the NIC reads and writes that memory. Checksums of sent frames are computed in software, in
// one pass with the copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/address.h"
#include "core/nic_slot.h"
#include "core/result.h"
#include "hugepage/xdp_memory.h"
#include "transport/link/link.h"

namespace ztcp::link {

struct XdpConfig {
  std::string interface;
  IpAddress address;              // The interface has it.
  std::uint16_t listen_port = 0;  // The one of slot 0.
  NicSlot slot;                   // This process's part of the interface.
  // Source ports of our connections.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  std::uint16_t mtu_bytes = 1500;
  std::uint32_t rx_frames = hugepage::kXdpRxChunks;  // For each queue; a power of two, 512 or more.
  // Links, among which the queues are divided.
  std::uint16_t lanes = 1;
  bool may_be_native = true;  // False: tests of the generic mode.
  // Where set-up may have pinned the program (xdp/attachment.h). Without one this process attaches
  // it.
  std::string pin_folder;
};

// A link for each lane, joined as in shards.h by the caller. Logs its failure.
Result<std::vector<std::unique_ptr<Link>>> open_xdp(const XdpConfig& config);

}  // namespace ztcp::link
