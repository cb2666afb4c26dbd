// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Link over a tap interface: the kernel is the peer on the wire. It speaks the offload header of
// virtio (IFF_VNET_HDR), so that checksums are left to whoever needs them and TCP super-segments
// cross whole both ways. Received frames lie in as many slots as they fill, so that a small one
// which is kept keeps little. The kernel copies while we write: payload is given in place whatever
// its memory_key says and is free again when transmit() returns.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/core/address.h"
#include "transport/core/result.h"
#include "transport/link/link.h"

namespace ztcp::link {

struct TapConfig {
  // An existing tap interface the user may open, or one to create (CAP_NET_ADMIN), which then
  // lives as long as the link.
  std::string interface;
  // Ours, on the near end of the wire; the interface has one of its own.
  MacAddress mac;
  std::uint16_t mtu_bytes = 1500;  // A created interface gets it; an existing one must have it.
  // False where received frames travel on to other links (the switch): the kernel then fills all
  // checksums and cuts all segments itself.
  bool offloads = true;
  std::uint32_t rx_slots = 0;  // To receive into, held frames included; 0: as 32 MiB hold.
};

// Logs its failure. kBusy: another process has the interface.
Result<std::unique_ptr<Link>> open_tap(const TapConfig& config);

}  // namespace ztcp::link
