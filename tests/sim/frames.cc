// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/sim/frames.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/link/impairment.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/checksum.h"
#include "transport/wire/frame_parser.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"

namespace ztcp::sim {
namespace {

// Fills in the checksums that were left to the NIC.
void finish_checksums(Bytes& frame, std::size_t l2, std::size_t l3) {
  std::byte* ip = frame.data() + l2;
  std::byte* tcp = ip + l3;
  if (l3 == wire::kIpv4Bytes) {
    wire::store_be16(ip + 10, 0);
    wire::store_be16(ip + 10, wire::internet_checksum({ip, l3}));
  }
  const std::size_t tcp_bytes = frame.size() - l2 - l3;
  wire::store_be16(tcp + wire::kTcpChecksumOffset, 0);
  RxFrame view;
  view.head = frame;
  const wire::ParsedFrame parsed = wire::parse_frame(view);
  auto sum = wire::pseudo_header_checksum(parsed.ip.source, parsed.ip.destination,
                                          static_cast<std::uint32_t>(tcp_bytes));
  sum.add({tcp, tcp_bytes});
  wire::store_be16(tcp + wire::kTcpChecksumOffset, sum.finish());
}

}  // namespace

std::vector<Bytes> put_on_cable(const TxFrame& frame) {
  const std::span header(frame.header.data(), frame.header_bytes);
  Bytes payload;
  payload.reserve(frame.payload_bytes);
  for (std::size_t i = 0; i < frame.fragment_count; ++i) {
    const Fragment& fragment = frame.fragments[i];
    payload.insert(payload.end(), fragment.data, fragment.data + fragment.size_bytes);
  }
  std::vector<Bytes> cable;
  if (frame.segment_size_bytes == 0 || payload.size() <= frame.segment_size_bytes) {
    Bytes whole(header.begin(), header.end());
    whole.insert(whole.end(), payload.begin(), payload.end());
    if (frame.checksum_offload) finish_checksums(whole, frame.l2_bytes, frame.l3_bytes);
    cable.push_back(std::move(whole));
    return cable;
  }
  const std::size_t tcp_at = std::size_t{frame.l2_bytes} + frame.l3_bytes;
  const std::uint32_t first_sequence = wire::load_be32(frame.header.data() + tcp_at + 4);
  for (std::size_t at = 0; at < payload.size(); at += frame.segment_size_bytes) {
    const std::size_t size = std::min<std::size_t>(frame.segment_size_bytes, payload.size() - at);
    Bytes segment(header.begin(), header.end());
    const auto from = payload.begin() + static_cast<std::ptrdiff_t>(at);
    segment.insert(segment.end(), from, from + static_cast<std::ptrdiff_t>(size));
    const bool is_ipv6 = frame.l3_bytes == wire::kIpv6Bytes;
    const std::size_t ip_payload_at = is_ipv6 ? tcp_at : std::size_t{frame.l2_bytes};
    wire::store_be16(segment.data() + frame.l2_bytes + (is_ipv6 ? 4 : 2),
                     static_cast<std::uint16_t>(segment.size() - ip_payload_at));
    wire::store_be32(segment.data() + tcp_at + 4, first_sequence + static_cast<std::uint32_t>(at));
    if (at + size < payload.size())  // FIN and PSH belong to the last one.
      segment[tcp_at + 13] &= std::byte{0xf6};
    finish_checksums(segment, frame.l2_bytes, frame.l3_bytes);
    cable.push_back(std::move(segment));
  }
  return cable;
}

ReceivedFrame::ReceivedFrame(Bytes bytes, std::size_t pieces, bool checksum_good)
    : bytes_(std::move(bytes)), checksum_good_(checksum_good) {
  // The link promises that the first buffer holds all headers.
  const std::size_t first = std::min<std::size_t>(bytes_.size(), TxFrame::kHeaderCapacity);
  std::span<const std::byte> rest = std::span(bytes_).subspan(pieces > 1 ? first : bytes_.size());
  for (std::size_t left = pieces - 1; left > 0 && !rest.empty(); --left) {
    const std::size_t size =
        left == 1 ? rest.size() : std::min(rest.size(), rest.size() / left + 1);
    pieces_.push_back(rest.first(size));
    rest = rest.subspan(size);
  }
}

RxFrame ReceivedFrame::view() {
  RxFrame frame;
  std::size_t in_pieces = 0;
  for (const auto piece : pieces_) in_pieces += piece.size();
  frame.head = std::span(bytes_).first(bytes_.size() - in_pieces);
  frame.more = pieces_;
  frame.handle = this;
  frame.charge_bytes = bytes_.size() <= 2048 ? 2048 : 10240;
  frame.checksum_good = checksum_good_;
  return frame;
}

Bytes pattern(std::size_t size, std::uint64_t seed) {
  link::Dice dice(seed);
  Bytes bytes(size);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = dice.draw();
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return bytes;
}

}  // namespace ztcp::sim
