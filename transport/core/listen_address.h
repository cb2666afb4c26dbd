// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a listener of a TCP transport tells its peers, in the 34 bytes of NCCL's handle that are the
// transport's own (plugin/handle.h). Of either family; a place for a second endpoint is there where
// both are IPv4. Numbers are big-endian:
//
//   one endpoint   address[16], IPv4 as ::ffff:a.b.c.d; u16 port; cookie[16]
//   with a watch   0xff; zero[5]; u16 watch port; u32 watch address; u32 address; u16 port; cookie
//
// IPv6 addresses that begin with 0xff are groups' (RFC 4291 section 2.7): nobody listens at one, so
// the first byte tells the two apart. There is no zone of a link-local address, see IpAddress.
#pragma once

#include <array>
#include <cstddef>

#include "transport/core/address.h"
#include "transport/core/result.h"

namespace ztcp {

struct ListenAddress {
  using Bytes = std::array<std::byte, 34>;

  Endpoint endpoint;
  Endpoint watch;  // Of the kernel, where the process is watched; port 0: nowhere.
  std::array<std::byte, 16> cookie{};  // Known to who was invited.
};

// A watch is IPv4 beside an IPv4 endpoint: there is no space for more.
ListenAddress::Bytes to_bytes(const ListenAddress& address);
Result<ListenAddress> parse_listen_address(const ListenAddress::Bytes& bytes);

}  // namespace ztcp
