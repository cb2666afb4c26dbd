// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/frame_parser.h"

#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"

namespace ztcp::wire {
namespace {

bool parse_ipv4_as_ip(std::span<const std::byte> head, std::size_t packet_bytes,
                      IpHeader& ip) noexcept {
  Ipv4Header header;
  if (!parse_ipv4(head, packet_bytes, header)) [[unlikely]]
    return false;
  ip.source = header.source;
  ip.destination = header.destination;
  ip.protocol = header.protocol;
  ip.ecn = header.ecn;
  ip.dscp = header.dscp;
  ip.hop_limit = header.time_to_live;
  ip.header_bytes = header.header_bytes;
  ip.total_bytes = header.total_bytes;
  return true;
}

bool is_icmp(const ParsedFrame& parsed) noexcept {
  return parsed.ip.protocol == (parsed.is_ipv6() ? IpProtocol::kIcmpv6 : IpProtocol::kIcmp);
}

// An IPv6 header has no checksum.
bool ip_checksum_good(const RxFrame& frame, const ParsedFrame& parsed) noexcept {
  return parsed.is_ipv6() || ipv4_checksum_good(frame.head.subspan(parsed.ethernet.header_bytes,
                                                                   parsed.ip.header_bytes));
}

}  // namespace

void parse_frame(const RxFrame& frame, ParsedFrame& parsed) noexcept {
  parsed.kind = FrameKind::kMalformed;
  std::size_t frame_bytes = frame.head.size();
  for (const auto piece : frame.more) frame_bytes += piece.size();

  EthernetHeader& ethernet = parsed.ethernet;
  if (!parse_ethernet(frame.head, ethernet)) [[unlikely]]
    return;
  std::size_t offset = ethernet.header_bytes;
  if (ethernet.type != EtherType::kIpv4 && ethernet.type != EtherType::kIpv6) [[unlikely]] {
    parsed.payload_offset = ethernet.header_bytes;
    parsed.payload_bytes = static_cast<std::uint32_t>(frame_bytes - offset);
    parsed.kind = ethernet.type == EtherType::kArp ? FrameKind::kArp : FrameKind::kForeign;
    return;
  }

  IpHeader& ip = parsed.ip;
  const auto packet = frame.head.subspan(offset);
  if (ethernet.type == EtherType::kIpv4) {
    if (!parse_ipv4_as_ip(packet, frame_bytes - offset, ip)) [[unlikely]]
      return;
  } else if (!parse_ipv6(packet, frame_bytes - offset, ip)) [[unlikely]] {
    return;
  }
  offset += ip.header_bytes;
  std::size_t payload_bytes = ip.total_bytes - ip.header_bytes;
  if (ip.protocol == IpProtocol::kTcp) [[likely]] {
    auto segment = frame.head.subspan(offset);
    // The header must not reach into Ethernet padding.
    if (segment.size() > payload_bytes) segment = segment.first(payload_bytes);
    if (!parse_tcp(segment, parsed.tcp)) [[unlikely]]
      return;
    offset += parsed.tcp.header_bytes;
    payload_bytes -= parsed.tcp.header_bytes;
    parsed.kind = FrameKind::kTcp;
  } else {
    const FrameKind icmp = parsed.is_ipv6() ? FrameKind::kIcmpv6 : FrameKind::kIcmp;
    parsed.kind = is_icmp(parsed) ? icmp : FrameKind::kForeign;
  }
  parsed.payload_offset = static_cast<std::uint32_t>(offset);
  parsed.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
}

bool verify_checksums(const RxFrame& frame, const ParsedFrame& parsed) noexcept {
  if (frame.checksum_good) return true;
  if (!ip_checksum_good(frame, parsed)) return false;
  const std::size_t offset = parsed.payload_offset - parsed.tcp.header_bytes;
  const std::uint32_t size_bytes = parsed.payload_bytes + parsed.tcp.header_bytes;
  Checksum sum = pseudo_header_checksum(parsed.ip.source, parsed.ip.destination, size_bytes);
  for_each_piece(frame, offset, size_bytes, [&](auto piece) { sum.add(piece); });
  return sum.is_good();
}

bool verify_icmp_checksums(const RxFrame& frame, const ParsedFrame& parsed) noexcept {
  if (!ip_checksum_good(frame, parsed)) return false;
  Checksum sum;
  if (parsed.is_ipv6())
    sum = pseudo_header_checksum(parsed.ip.source, parsed.ip.destination, parsed.payload_bytes,
                                 IpProtocol::kIcmpv6);
  for_each_piece(frame, parsed.payload_offset, parsed.payload_bytes,
                 [&](auto piece) { sum.add(piece); });
  return sum.is_good();
}

}  // namespace ztcp::wire
