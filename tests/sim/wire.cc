// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/sim/wire.h"

#include <utility>

#include "transport/wire/frame_parser.h"
#include "transport/wire/ipv4.h"

namespace ztcp::sim {
namespace {

wire::ParsedFrame parse(const Bytes& frame) {
  RxFrame view;
  view.head = frame;
  return wire::parse_frame(view);
}

// A switch's mark on a packet that waited too long (RFC 3168).
bool mark_congestion(Bytes& frame) {
  const auto parsed = parse(frame);
  if (parsed.kind != wire::FrameKind::kTcp || parsed.ip.ecn == wire::Ecn::kNotCapable) return false;
  set_codepoint(frame, wire::Ecn::kCongestion);
  return true;
}

}  // namespace

void set_codepoint(Bytes& frame, wire::Ecn ecn) {
  const auto parsed = parse(frame);
  if (parsed.kind != wire::FrameKind::kTcp) return;
  std::byte* ip = frame.data() + parsed.ethernet.header_bytes;
  const auto bits = static_cast<std::byte>(ecn);
  if (parsed.is_ipv6()) {
    ip[1] = (ip[1] & ~std::byte{0x30}) | bits << 4;
    return;
  }
  ip[1] = (ip[1] & ~std::byte{3}) | bits;
  wire::store_be16(ip + 10, 0);
  wire::store_be16(ip + 10, wire::internet_checksum({ip, parsed.ip.header_bytes}));
}

void Wire::send(TimePoint now, Bytes frame) {
  const std::uint64_t number = counters_.offered++;
  counters_.offered_bytes += frame.size();
  if (cut_ || drop_numbers_.contains(number) || (drop_filter_ && drop_filter_(frame))) {
    ++counters_.lost;
    return;
  }
  if (path_mtu_bytes_ != 0 && frame.size() > path_mtu_bytes_ + wire::kEthernetBytes) {
    ++counters_.too_long;
    return;
  }
  const link::Passage passage = impairer_.admit(now, static_cast<std::uint32_t>(frame.size()));
  if (passage.fate == link::Passage::Fate::kLost) ++counters_.lost;
  if (passage.fate == link::Passage::Fate::kQueueFull) ++counters_.queue_full;
  if (passage.copies == 0) return;
  if (passage.mark_ecn && mark_congestion(frame)) ++counters_.marked;
  if (change_) change_(frame);
  if (passage.corrupted) {
    constexpr std::uint32_t kSparedBits = 14 * 8;
    const std::uint32_t bit = kSparedBits + passage.flipped_bit;
    frame[bit / 8] ^= std::byte{1} << (bit % 8);
    ++counters_.corrupted;
  }
  if (passage.copies == 2) {
    ++counters_.duplicated;
    in_flight_.emplace(passage.at[1], frame);
  }
  in_flight_.emplace(passage.at[0], std::move(frame));
}

Bytes Wire::take() {
  ++counters_.delivered;
  return std::move(in_flight_.extract(in_flight_.begin()).mapped());
}

bool is_pure_ack(const Bytes& frame) {
  RxFrame view;
  view.head = frame;
  const auto parsed = wire::parse_frame(view);
  return parsed.kind == wire::FrameKind::kTcp && parsed.payload_bytes == 0 &&
         !parsed.tcp.flags.has_any(wire::kSyn | wire::kFin | wire::kRst);
}

}  // namespace ztcp::sim
