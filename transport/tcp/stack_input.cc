// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the receiver of a frame. A frame from a stranger costs a counter, at most one answer, and
// no memory.
#include "transport/tcp/stack_impl.h"
#include "transport/wire/arp.h"

namespace ztcp::tcp {
namespace {

// SYN with FIN or RST is not a valid beginning.
bool is_plain_syn(const wire::TcpHeader& tcp) {
  constexpr wire::TcpFlags kMask = wire::kSyn | wire::kAck | wire::kRst | wire::kFin;
  return (tcp.flags & kMask) == wire::kSyn;
}

}  // namespace

void Stack::Impl::on_frame(TimePoint now, RxFrame& frame) {
  frame.kept = false;
  const wire::ParsedFrame& parsed = headers.next(frame);
  const StackConfig& config = context.config;
  if (parsed.kind == wire::FrameKind::kTcp) [[likely]] {
    // A segment for our address in a frame for another MAC says nothing about us: the switch
    // floods, or the port is promiscuous. Broadcast TCP is ignored (RFC 1122 section 4.2.3.10).
    if (parsed.ethernet.destination != config.mac ||
        parsed.ip.destination != config.address.address ||
        parsed.ethernet.vlan_id != config.vlan_id) [[unlikely]] {
      ++context.counters.rx_not_for_us;
      return;
    }
    on_tcp(now, frame, parsed);
    return;
  }
  if (parsed.kind == wire::FrameKind::kMalformed)
    ++context.counters.rx_malformed;
  else if (!is_for_us(parsed))
    ++context.counters.rx_not_for_us;
  else if (parsed.kind == wire::FrameKind::kArp)
    on_arp(now, frame, parsed);
  else if (parsed.kind == wire::FrameKind::kIcmp)
    on_icmp(now, frame, parsed);
  else
    on_icmpv6(now, frame, parsed);
}

bool Stack::Impl::is_for_us(const wire::ParsedFrame& parsed) const {
  const StackConfig& config = context.config;
  if (!is_station(parsed.ethernet.source) || parsed.ethernet.vlan_id != config.vlan_id)
    return false;
  const MacAddress to = parsed.ethernet.destination;
  const bool is_to_us = to == config.mac || to == kBroadcastMac;
  const IpAddress own = config.address.address;
  switch (parsed.kind) {
    case wire::FrameKind::kArp:
      return is_to_us && !config.is_ipv6();
    case wire::FrameKind::kIcmp:
      return is_to_us && parsed.ip.destination == own && may_come_from(parsed);
    case wire::FrameKind::kIcmpv6: {
      const IpAddress group = parsed.ip.destination;
      const bool is_our_group = group == wire::solicited_node(own) || group == wire::kAllNodes;
      return config.is_ipv6() &&
             (group == own ? to == config.mac : is_our_group && to == wire::group_mac(group));
    }
    default:
      return false;
  }
}

void Stack::Impl::on_tcp(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed) {
  // Before any code looks at the payload, or believes the header.
  if (!wire::verify_checksums(frame, parsed)) [[unlikely]] {
    ++context.counters.rx_bad_checksum;
    return;
  }
  ++context.counters.rx_segments;
  const Demux::Key key =
      Demux::key({parsed.ip.source, parsed.tcp.source_port}, parsed.tcp.destination_port);
  const std::uint32_t index = context.demux.find(key);
  if (index != Demux::kNone) [[likely]] {
    Connection& connection = connections[index];
    if (!is_plain_syn(parsed.tcp) || !connection.may_be_replaced_by(parsed.tcp) ||
        context.find_listener(parsed.tcp.destination_port) == nullptr ||
        !is_station(parsed.ethernet.source)) [[likely]] {
      touched.push(index);
      connection.on_segment(now, frame, parsed);
      return;
    }
    // RFC 1122 section 4.2.2.13: the new connection's numbers must not overlap the old one's.
    const SeqNum beyond = connection.sender().snd_max();
    drop(connection);
    on_syn(now, parsed, beyond);
    return;
  }
  // The addresses of a connection were checked when it began. Any answer goes back to the frame's
  // source, which must be a single host.
  if (!is_station(parsed.ethernet.source)) {
    ++context.counters.rx_malformed;
    return;
  }
  if (!may_come_from(parsed)) {
    ++context.counters.rx_not_for_us;
    return;
  }
  if (context.find_listener(parsed.tcp.destination_port) != nullptr)
    on_segment_in_listen(now, parsed);
  else if (!hand_over(frame, parsed))
    on_unexpected(parsed);
}

bool Stack::Impl::hand_over(RxFrame& frame, const wire::ParsedFrame& parsed) {
  if (!context.ports.is_shared() || context.was_handed_over(frame)) return false;
  const auto owner = context.ports.owner(parsed.tcp.destination_port);
  if (!owner || *owner == context.config.shard.index) return false;
  ++context.counters.rx_handed_over;
  frame.hand_to = *owner;
  frame.checksum_good = true;  // Verified here.
  return true;
}

void Stack::Impl::pass_on(RxFrame& frame) const {
  const Shard& shard = context.config.shard;
  const auto next = static_cast<std::uint8_t>((shard.index + 1) % shard.count);
  if (shard.count > 1 && next != frame.port) frame.hand_to = next;
}

// Whether the packet's source address is plausible (RFC 1122 section 3.2.1.3, RFC 9293 MUST-63): no
// group address, and our own address only in our own frames. The MAC addresses have been checked
// before. Without an address of our own, no packet is for us.
bool Stack::Impl::may_come_from(const wire::ParsedFrame& parsed) const {
  const IpPrefix& ours = context.config.address;
  return context.has_address() && ours.may_be_host(parsed.ip.source) &&
         (parsed.ip.source != ours.address || parsed.ethernet.source == context.config.mac);
}

// RFC 9293 section 3.10.7.2.
void Stack::Impl::on_segment_in_listen(TimePoint now, const wire::ParsedFrame& parsed) {
  const wire::TcpFlags flags = parsed.tcp.flags;
  if (is_plain_syn(parsed.tcp))
    on_syn(now, parsed, std::nullopt);
  else if (flags.has(wire::kAck))
    on_unexpected(parsed);
  else
    ++context.counters.rx_no_connection;  // It can neither begin nor end a connection.
}

// RFC 9293 section 3.10.7.1.
void Stack::Impl::on_unexpected(const wire::ParsedFrame& parsed) {
  ++context.counters.rx_no_connection;
  const wire::TcpHeader& tcp = parsed.tcp;
  if (tcp.flags.has(wire::kRst)) return;
  const bool is_of_us = context.ports.owner(tcp.destination_port) == context.config.shard.index;
  if (tcp.flags.has(wire::kSyn) && tcp.flags.has(wire::kAck) && is_of_us)
    context.fitting_ports.note({parsed.ip.source, tcp.source_port}, tcp.destination_port);
  StackContext::Reset reset{.to = parsed.ethernet.source,
                            .remote = {parsed.ip.source, tcp.source_port},
                            .local_port = tcp.destination_port,
                            .seq = {},
                            .ack = {},
                            .with_ack = false};
  if (tcp.flags.has(wire::kAck)) {
    reset.seq = SeqNum(tcp.acknowledgment);
  } else {
    const std::uint32_t length = parsed.payload_bytes + (tcp.flags.has(wire::kSyn) ? 1U : 0U) +
                                 (tcp.flags.has(wire::kFin) ? 1U : 0U);
    reset.ack = SeqNum(tcp.sequence) + length;
    reset.with_ack = true;
  }
  context.send_reset(reset);
}

void Stack::Impl::on_syn(TimePoint now, const wire::ParsedFrame& parsed,
                         std::optional<SeqNum> beyond) {
  const auto next_hop = context.neighbours.next_hop(parsed.ip.source);
  if (!next_hop || duplicate) {
    ++context.counters.rx_not_for_us;
    return;
  }
  if (context.has_lost_address()) return on_unexpected(parsed);
  const std::uint32_t index = take_slot(now, /*for_us=*/false);
  if (index == Demux::kNone) {
    ++context.counters.syn_dropped_table_full;
    return;
  }
  const Demux::Key key =
      Demux::key({parsed.ip.source, parsed.tcp.source_port}, parsed.tcp.destination_port);
  context.demux.insert(key, index);
  connections[index].open_passive(now, parsed, *next_hop, beyond);
}

void Stack::Impl::on_neighbour_change(const std::optional<Neighbours::Change>& change) {
  if (!change) return;
  context.neighbours.for_each_user(*change, [&](std::uint32_t user) {
    if (user < connections.size()) connections[user].on_neighbour(change->mac);
  });
}

void Stack::Impl::on_arp(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed) {
  const auto packet = wire::parse_arp(frame.head.subspan(parsed.payload_offset));
  if (!packet) {
    ++context.counters.rx_malformed;
    return;
  }
  bool reply = false;
  on_neighbour_change(context.neighbours.on_arp(now, *packet, reply));
  const bool is_of_others = is_station(packet->sender_mac) &&
                            packet->sender_mac != context.config.mac &&
                            context.config.address.address != packet->sender_ip;
  if (is_of_others) pass_on(frame);
  if (!reply || context.was_handed_over(frame)) return;
  write_arp({.operation = wire::ArpOperation::kReply,
             .sender_mac = context.config.mac,
             .sender_ip = context.config.address.address.v4(),
             .target_mac = packet->sender_mac,
             .target_ip = packet->sender_ip},
            packet->sender_mac);
}

}  // namespace ztcp::tcp
