// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/frame_parser.h"

#include "transport/wire/checksum.h"

namespace ztcp::wire {

void parse_frame(const RxFrame& frame, ParsedFrame& parsed) noexcept {
  parsed.kind = FrameKind::kMalformed;
  std::size_t frame_bytes = frame.head.size();
  for (const auto piece : frame.more) frame_bytes += piece.size();

  EthernetHeader& ethernet = parsed.ethernet;
  if (!parse_ethernet(frame.head, ethernet)) [[unlikely]]
    return;
  std::size_t offset = ethernet.header_bytes;
  if (ethernet.type != EtherType::kIpv4) [[unlikely]] {
    parsed.payload_offset = ethernet.header_bytes;
    parsed.payload_bytes = static_cast<std::uint32_t>(frame_bytes - offset);
    parsed.kind = ethernet.type == EtherType::kArp ? FrameKind::kArp : FrameKind::kForeign;
    return;
  }

  Ipv4Header& ip = parsed.ip;
  if (!parse_ipv4(frame.head.subspan(offset), frame_bytes - offset, ip)) [[unlikely]]
    return;
  offset += ip.header_bytes;
  std::size_t payload_bytes = std::size_t{ip.total_bytes} - ip.header_bytes;
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
    parsed.kind = ip.protocol == IpProtocol::kIcmp ? FrameKind::kIcmp : FrameKind::kForeign;
  }
  parsed.payload_offset = static_cast<std::uint32_t>(offset);
  parsed.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
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

bool verify_icmp_checksums(const RxFrame& frame, const ParsedFrame& parsed) noexcept {
  if (!ipv4_checksum_good(frame.head.subspan(parsed.ethernet.header_bytes, parsed.ip.header_bytes)))
    return false;
  Checksum sum;
  for_each_piece(frame, parsed.payload_offset, parsed.payload_bytes,
                 [&](auto piece) { sum.add(piece); });
  return sum.is_good();
}

}  // namespace ztcp::wire
