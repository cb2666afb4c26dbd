// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a listener of a TCP transport tells its peers, in the 34 bytes of NCCL's handle that are the
// transport's own (plugin/handle.h). Of either family; a place for more is there where it is IPv4.
// Numbers are big-endian:
//
//   alone       address[16], IPv4 as ::ffff:a.b.c.d; u16 port; cookie[16]
//   with more   0xff; u8 flags: 1 in shared memory; zero[4]; u16 watch port, 0: none; u32 watch
//               address; u32 address; u16 port; cookie
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
  // Its NIC is memory between processes of one host, not on any network.
  bool in_shared_memory = false;
};

// Of an IPv6 endpoint there is no space for more.
ListenAddress::Bytes to_bytes(const ListenAddress& address);
Result<ListenAddress> parse_listen_address(const ListenAddress::Bytes& bytes);

}  // namespace ztcp
