// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/frame_parser.h"

#include "transport/wire/checksum.h"

namespace ztcp::wire {

ParsedFrame parse_frame(const RxFrame& frame) noexcept {
  ParsedFrame parsed;
  std::size_t frame_bytes = frame.head.size();
  for (const auto piece : frame.more) frame_bytes += piece.size();

  const auto ethernet = parse_ethernet(frame.head);
  if (!ethernet) [[unlikely]]
    return parsed;
  parsed.ethernet = *ethernet;
  parsed.payload_offset = ethernet->header_bytes;
  parsed.payload_bytes = static_cast<std::uint32_t>(frame_bytes - parsed.payload_offset);
  if (ethernet->type != EtherType::kIpv4) [[unlikely]] {
    parsed.kind = ethernet->type == EtherType::kArp ? FrameKind::kArp : FrameKind::kForeign;
    return parsed;
  }

  const auto ip = parse_ipv4(frame.head.subspan(parsed.payload_offset), parsed.payload_bytes);
  if (!ip) [[unlikely]]
    return parsed;
  parsed.ip = *ip;
  parsed.payload_offset += ip->header_bytes;
  parsed.payload_bytes = static_cast<std::uint32_t>(ip->total_bytes - ip->header_bytes);
  if (ip->protocol != IpProtocol::kTcp) [[unlikely]] {
    parsed.kind = ip->protocol == IpProtocol::kIcmp ? FrameKind::kIcmp : FrameKind::kForeign;
    return parsed;
  }

  auto segment = frame.head.subspan(parsed.payload_offset);
  // The header must not reach into Ethernet padding.
  if (segment.size() > parsed.payload_bytes) segment = segment.first(parsed.payload_bytes);
  const auto tcp = parse_tcp(segment);
  if (!tcp) [[unlikely]]
    return parsed;
  parsed.tcp = *tcp;
  parsed.payload_offset += tcp->header_bytes;
  parsed.payload_bytes -= tcp->header_bytes;
  parsed.kind = FrameKind::kTcp;
  return parsed;
}

bool verify_checksums(const RxFrame& frame, const ParsedFrame& parsed) noexcept {
  if (frame.checksum_good) return true;
  if (!ipv4_checksum_good(frame.head.subspan(parsed.ethernet.header_bytes, parsed.ip.header_bytes)))
    return false;
  const std::size_t offset = parsed.payload_offset - parsed.tcp.header_bytes;
  const std::uint32_t size_bytes = parsed.payload_bytes + parsed.tcp.header_bytes;
  Checksum sum = pseudo_header_checksum(parsed.ip.source, parsed.ip.destination, size_bytes);
  for_each_piece(frame, offset, size_bytes, [&](auto piece) { sum.add(piece); });
  return sum.is_good();
}

}  // namespace ztcp::wire
