// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A listener's address, in the 34 bytes of NCCL's handle that belong to the transport
// (plugin/handle.h). IPv4 or IPv6; with IPv4 there is room for more. Numbers are big-endian:
//
//   alone       address[16], IPv4 as ::ffff:a.b.c.d; u16 port; cookie[16]
//   with more   0xff; u8 flags: 1 in shared memory; zero[4]; u16 watch port, 0: none; u32 watch
//               address; u32 address; u16 port; cookie
//
// IPv6 addresses that begin with 0xff are multicast (RFC 4291 section 2.7) and no listener has one,
// so the first byte tells the two forms apart. A link-local address has no zone, see IpAddress.
#pragma once

#include <array>
#include <cstddef>

#include "core/address.h"
#include "core/result.h"

namespace ztcp {

struct ListenAddress {
  using Bytes = std::array<std::byte, 34>;

  Endpoint endpoint;
  Endpoint watch;                      // Kernel endpoint that watches the process; port 0: none.
  std::array<std::byte, 16> cookie{};  // Known to the invited peer alone.
  // The NIC is memory shared by processes of one host, not on any network.
  bool in_shared_memory = false;
};

// With an IPv6 endpoint there is no room for the other fields.
ListenAddress::Bytes to_bytes(const ListenAddress& address);
Result<ListenAddress> parse_listen_address(const ListenAddress::Bytes& bytes);

}  // namespace ztcp
