// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/tcp_header.h"

#include "transport/wire/byte_order.h"

namespace ztcp::wire {

bool parse_tcp(std::span<const std::byte> segment, TcpHeader& header) noexcept {
  if (segment.size() < kTcpBytes) [[unlikely]]
    return false;
  const std::byte* p = segment.data();
  const auto header_bytes = static_cast<std::uint8_t>((load_u8(p + 12) >> 4) * 4U);
  if (header_bytes < kTcpBytes || header_bytes > segment.size()) [[unlikely]]
    return false;
  header.source_port = load_be16(p);
  header.destination_port = load_be16(p + 2);
  header.sequence = load_be32(p + 4);
  header.acknowledgment = load_be32(p + 8);
  header.header_bytes = header_bytes;
  header.flags = TcpFlags(load_be16(p + kTcpFlagsOffset) & TcpFlags::kMask);
  header.window = load_be16(p + 14);
  return parse_tcp_options(segment.subspan(kTcpBytes, header_bytes - kTcpBytes), header.options);
}

std::size_t emit_tcp(const TcpHeader& header, std::byte* out) noexcept {
  const std::size_t header_bytes = kTcpBytes + emit_tcp_options(header.options, out + kTcpBytes);
  store_be16(out, header.source_port);
  store_be16(out + 2, header.destination_port);
  store_be32(out + 4, header.sequence);
  store_be32(out + 8, header.acknowledgment);
  store_be16(out + kTcpFlagsOffset,
             static_cast<std::uint16_t>(header_bytes / 4 << 12 | header.flags.bits()));
  store_be16(out + 14, header.window);
  store_be16(out + kTcpChecksumOffset, 0);
  store_be16(out + 18, 0);  // Urgent pointer: never used.
  return header_bytes;
}

}  // namespace ztcp::wire
