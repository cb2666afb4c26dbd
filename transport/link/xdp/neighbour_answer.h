// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The stack's ARP and neighbour discovery behind an AF_XDP link: reads its requests, and makes the
// frames that answer them. All other ARP and ICMPv6 of the stack (announcements, probes of its own
// address, reports of groups) is the kernel's business, and ends here.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/address.h"
#include "core/frame.h"
#include "transport/wire/arp.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/ip.h"
#include "transport/wire/ipv6.h"
#include "transport/wire/ndp.h"

namespace ztcp::link::xdp {

inline bool is_tcp(const TxFrame& frame) {
  if (frame.l3_bytes == 0) return false;
  const std::byte* ip = frame.header.data() + frame.l2_bytes;
  return wire::IpProtocol{wire::load_u8(ip + (frame.is_ipv6() ? 6 : 9))} == wire::IpProtocol::kTcp;
}

// The neighbour that the frame asks for; nothing: it asks for none.
inline std::optional<IpAddress> asked_neighbour(const TxFrame& frame, IpAddress own) {
  const auto packet = std::span(frame.header).first(frame.header_bytes).subspan(frame.l2_bytes);
  if (frame.l3_bytes == 0) {
    const auto arp = wire::parse_arp(packet);
    if (!arp || arp->operation != wire::ArpOperation::kRequest || arp->target_ip == own.v4())
      return std::nullopt;
    return arp->target_ip;
  }
  wire::IpHeader ip;
  if (!frame.is_ipv6() || !wire::parse_ipv6(packet, packet.size(), ip)) return std::nullopt;
  const auto message = wire::parse_neighbour_message(ip, packet.subspan(wire::kIpv6Bytes));
  if (!message || message->is_advertisement || message->target == own) return std::nullopt;
  return message->target;
}

// Frames that the stack may keep for a while.
class NeighbourAnswers {
 public:
  struct Answer {
    IpAddress own;
    MacAddress own_mac;
    IpAddress neighbour;
    MacAddress neighbour_mac;
  };

  NeighbourAnswers() {
    for (Slot& slot : slots_) free_.push_back(&slot);
  }

  bool has_room() const { return !free_.empty(); }
  RxFrame make(const Answer& answer) {
    Slot& slot = *free_.back();
    free_.pop_back();
    std::byte* out = slot.data();
    const bool is_v4 = answer.own.is_v4();
    std::size_t size =
        wire::emit_ethernet({.destination = answer.own_mac,
                             .source = answer.neighbour_mac,
                             .type = is_v4 ? wire::EtherType::kArp : wire::EtherType::kIpv6},
                            out);
    size += is_v4 ? write_arp(answer, out + size) : write_advertisement(answer, out + size);
    RxFrame frame;
    frame.head = std::span(slot).first(size);
    frame.handle = &slot;
    frame.charge_bytes = sizeof(Slot);
    return frame;
  }
  // False: the handle is no answer's.
  bool take_back(void* handle) {
    if (free_.size() == slots_.size()) return false;
    auto* slot = static_cast<Slot*>(handle);
    if (std::less<>{}(slot, slots_.data()) || !std::less<>{}(slot, slots_.data() + slots_.size()))
      return false;
    free_.push_back(slot);
    return true;
  }

 private:
  using Slot = std::array<std::byte, 128>;

  static std::size_t write_arp(const Answer& answer, std::byte* out) {
    return wire::emit_arp({.operation = wire::ArpOperation::kReply,
                           .sender_mac = answer.neighbour_mac,
                           .sender_ip = answer.neighbour.v4(),
                           .target_mac = answer.own_mac,
                           .target_ip = answer.own.v4()},
                          out);
  }
  static std::size_t write_advertisement(const Answer& answer, std::byte* out) {
    const std::size_t size =
        wire::emit_neighbour_message({.is_advertisement = true,
                                      .target = answer.neighbour,
                                      .mac = answer.neighbour_mac,
                                      .is_solicited = true,
                                      .overrides = true},
                                     answer.neighbour, answer.own, out + wire::kIpv6Bytes);
    wire::emit_ipv6({.source = answer.neighbour,
                     .destination = answer.own,
                     .protocol = wire::IpProtocol::kIcmpv6,
                     .hop_limit = wire::kNdpHopLimit,
                     .payload_bytes = static_cast<std::uint16_t>(size)},
                    out);
    return wire::kIpv6Bytes + size;
  }

  std::array<Slot, 32> slots_;
  std::vector<Slot*> free_;
};

}  // namespace ztcp::link::xdp
