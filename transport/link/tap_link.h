// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Link over a tap interface: the kernel is the peer on the wire. It uses virtio's offload header
// (IFF_VNET_HDR), so that checksums are left to the final receiver and TCP super-segments cross
// whole both ways. A received frame takes as many slots as it fills, so that keeping a small one
// keeps little memory. The kernel copies while we write: payload is passed in place for any
// memory_key, and is free again when transmit() returns.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/address.h"
#include "core/result.h"
#include "transport/link/link.h"

namespace ztcp::link {

struct TapConfig {
  // An existing tap interface that the user may open, or one to create (CAP_NET_ADMIN), which then
  // lives as long as the link.
  std::string interface;
  // The address of our end of the wire; the interface has its own.
  MacAddress mac;
  std::uint16_t mtu_bytes = 1500;  // A created interface gets it; an existing one must have it.
  // False if received frames are forwarded to other links (the switch): the kernel then fills all
  // checksums and cuts all segments itself.
  bool offloads = true;
  std::uint32_t rx_slots = 0;  // For received frames, held ones included; 0: as many as fit into 32
                               // MiB.
};

// Logs its failure. kBusy: another process has the interface.
Result<std::unique_ptr<Link>> open_tap(const TapConfig& config);

}  // namespace ztcp::link
