// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ICMPv6 errors as routers send them.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/wire/icmpv6.h"

namespace ztcp::wire {

struct Icmpv6Error {
  Icmpv6Type type = Icmpv6Type::kPacketTooBig;
  std::uint8_t code = 0;
  std::uint32_t mtu_bytes = 0;
  Endpoint source{};  // Of the quoted segment.
  Endpoint destination{};
  std::uint32_t sequence = 0;
};

// From `router` to the quoted segment's source.
inline std::vector<std::byte> icmpv6_error_message(const Icmpv6Error& error, IpAddress router) {
  std::vector<std::byte> message(kIcmpv6ErrorBytes);
  store_u8(message.data(), static_cast<std::uint8_t>(error.type));
  store_u8(message.data() + 1, error.code);
  store_be32(message.data() + 4, error.mtu_bytes);
  emit_ipv6({.source = error.source.address,
             .destination = error.destination.address,
             .payload_bytes = 1460},
            message.data() + kIcmpBytes);
  std::byte* tcp = message.data() + kIcmpBytes + kIpv6Bytes;
  store_be16(tcp, error.source.port);
  store_be16(tcp + 2, error.destination.port);
  store_be32(tcp + 4, error.sequence);
  fill_icmpv6_checksum(router, error.source.address, message);
  return message;
}

}  // namespace ztcp::wire
