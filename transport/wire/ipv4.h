// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// IPv4 header (RFC 791). Options are skipped on receipt and never sent; fragments are refused:
// every packet of ours carries DF, and reassembly is an attack surface without a use here.
#pragma once

#include <cstdint>
#include <span>

#include "core/address.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/checksum.h"
#include "transport/wire/ip.h"

namespace ztcp::wire {

inline constexpr std::size_t kIpv4Bytes = 20;

struct Ipv4Header {
  Ipv4Address source;
  Ipv4Address destination;
  IpProtocol protocol = IpProtocol::kTcp;
  Ecn ecn = Ecn::kNotCapable;
  std::uint8_t dscp = 0;  // 0-63.
  std::uint8_t time_to_live = 64;
  std::uint16_t identification = 0;
  std::uint16_t total_bytes = 0;           // Header and payload.
  std::uint8_t header_bytes = kIpv4Bytes;  // Set by parse; emit writes no options.
};

// `head` begins at the IP header and holds at least all of it; `packet_bytes` is the size of the
// frame from there on, in all its pieces, padding included. The checksum is not verified.
inline bool parse_ipv4(std::span<const std::byte> head, std::size_t packet_bytes,
                       Ipv4Header& header) noexcept {
  if (head.size() < kIpv4Bytes) [[unlikely]]
    return false;
  const std::byte* p = head.data();
  const std::uint8_t version_and_length = load_u8(p);
  header.header_bytes = static_cast<std::uint8_t>((version_and_length & 0x0fU) * 4U);
  header.total_bytes = load_be16(p + 2);
  constexpr std::uint16_t kMoreFragmentsAndOffset = 0x3fff;
  const bool bad = version_and_length >> 4 != 4 || header.header_bytes < kIpv4Bytes ||
                   header.header_bytes > head.size() || header.total_bytes < header.header_bytes ||
                   header.total_bytes > packet_bytes ||
                   (load_be16(p + 6) & kMoreFragmentsAndOffset) != 0;
  if (bad) [[unlikely]]
    return false;
  const std::uint8_t traffic_class = load_u8(p + 1);
  header.dscp = traffic_class >> 2;
  header.ecn = Ecn{static_cast<std::uint8_t>(traffic_class & 3U)};
  header.identification = load_be16(p + 4);
  header.time_to_live = load_u8(p + 8);
  header.protocol = IpProtocol{load_u8(p + 9)};
  header.source.value = load_be32(p + 12);
  header.destination.value = load_be32(p + 16);
  return true;
}

// Whether the checksum of `header` (exactly the header's bytes) is right.
inline bool ipv4_checksum_good(std::span<const std::byte> header) noexcept {
  Checksum sum;
  sum.add(header);
  return sum.is_good();
}

// Writes and returns kIpv4Bytes, with DF set. With `offload` the checksum is left zero, for a link
// that fills it in.
inline std::size_t emit_ipv4(const Ipv4Header& header, std::byte* out,
                             bool offload = false) noexcept {
  constexpr std::uint16_t kDontFragment = 0x4000;
  store_u8(out, 0x45);
  store_u8(out + 1,
           static_cast<std::uint8_t>((header.dscp << 2) | static_cast<std::uint8_t>(header.ecn)));
  store_be16(out + 2, header.total_bytes);
  store_be16(out + 4, header.identification);
  store_be16(out + 6, kDontFragment);
  store_u8(out + 8, header.time_to_live);
  store_u8(out + 9, static_cast<std::uint8_t>(header.protocol));
  store_be16(out + 10, 0);
  store_be32(out + 12, header.source.value);
  store_be32(out + 16, header.destination.value);
  if (!offload) store_be16(out + 10, internet_checksum({out, kIpv4Bytes}));
  return kIpv4Bytes;
}

}  // namespace ztcp::wire
