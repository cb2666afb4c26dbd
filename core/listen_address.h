// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A listener's address, in the 52 bytes of NCCL's handle that belong to the transport
// (plugin/handle.h). Numbers are big-endian. The first 34 bytes have two forms:
//
//   alone       address[16], IPv4 as ::ffff:a.b.c.d; u16 port; cookie[16]
//   with more   0xff; u8 flags: 1 in shared memory, 4 shares its NIC; zero[4]; u16 watch port, 0:
//               none; u32 watch address; u32 address; u16 port; cookie
//
// IPv6 addresses that begin with 0xff are multicast (RFC 4291 section 2.7) and no listener has one,
// so the first byte tells the two forms apart. Both addresses of the second form are IPv4. With an
// IPv6 address the flags are 2 more, and the address is zero. A watch address of zero is then the
// loopback address of IPv6 in shared memory, else the listener's own; a watch with another IPv6
// address is left out.
//
// The last 18 bytes are zero, or have an address that the first 34 have no room for: a watch's, or
// with the flag 2 the listener's and a port of zero.
//
//   address[16], IPv4 as ::a.b.c.d; u16 port
//
// A handle without room for these bytes omits them: the listener is then reachable without a watch,
// and with the flag 2 not at all.
// An IPv4 address has 12 zeros before it here, because handles omit leading zeros. A link-local
// address has no zone, see IpAddress.
#pragma once

#include <array>
#include <cstddef>

#include "core/address.h"
#include "core/result.h"

namespace ztcp {

struct ListenAddress {
  static constexpr std::size_t kBaseBytes = 34;
  static constexpr std::size_t kWatchBytes = 18;
  using Bytes = std::array<std::byte, kBaseBytes + kWatchBytes>;

  Endpoint endpoint;
  Endpoint watch;                      // Kernel endpoint that watches the process; port 0: none.
  std::array<std::byte, 16> cookie{};  // Known to the invited peer alone.
  // The NIC is memory shared by processes of one host, not on any network.
  bool in_shared_memory = false;
  // Processes of that host share the NIC: see DialSettings::peer_shares_nic.
  bool shares_nic = false;
};

ListenAddress::Bytes to_bytes(const ListenAddress& address);
Result<ListenAddress> parse_listen_address(const ListenAddress::Bytes& bytes);

}  // namespace ztcp
