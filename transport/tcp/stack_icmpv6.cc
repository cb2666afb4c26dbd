// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ICMPv6 (RFC 4443): errors and echo as in stack_icmp.cc, neighbour discovery (RFC 4861), and the
// reports by which switches learn that this host listens to its solicited-node group (RFC 3810).
// Redirects are ignored: the config names the gateway, or routers do (stack_routers.cc). A NIC that
// takes its address from a router hears nothing but advertisements of routers before.
#include <algorithm>
#include <array>
#include <chrono>

#include "transport/tcp/stack_impl.h"
#include "transport/wire/icmpv6.h"

namespace ztcp::tcp {
namespace {

// RetransTimer of RFC 4861 section 10: time for the owner of an address to answer a probe.
constexpr Duration kProbeTime = std::chrono::seconds(1);

// Longer messages, with more options than any use has, are ignored.
constexpr std::size_t kMostMessageBytes = 512;

}  // namespace

void Stack::Impl::on_icmpv6(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed) {
  if (!wire::verify_icmp_checksums(frame, parsed)) {
    ++context.counters.rx_bad_checksum;
    return;
  }
  std::array<std::byte, kMostMessageBytes> beginning;
  const auto head =
      std::span(beginning).first(std::min<std::size_t>(parsed.payload_bytes, beginning.size()));
  copy_payload(frame, parsed, head);
  if (head.size() == parsed.payload_bytes) {
    if (context.hears_routers() && wire::is_router_advertisement(head))
      return on_router_advertisement(now, frame, parsed, head);
    if (const auto message = wire::parse_neighbour_message(parsed.ip, head);
        message && context.has_address())
      return on_neighbour_message(now, frame, parsed, *message);
  }
  if (!may_come_from(parsed)) {
    ++context.counters.rx_not_for_us;
    return;
  }
  const IpAddress own = context.config.address.address;
  if (wire::is_mld_query_for(wire::solicited_node(own), parsed.ip, head)) return write_mld_report();
  if (parsed.ip.destination != own) return;
  if (const auto error = wire::parse_icmpv6_error(head)) {
    if (!on_icmp_error(now, *error)) pass_on(frame);
    return;
  }
  // The echo buffer is free again once the reply was sent.
  if (!wire::is_icmpv6_echo_request(head) || parsed.payload_bytes > echo.size() ||
      !context.control.empty())
    return;
  const std::span<std::byte> message = std::span(echo).first(parsed.payload_bytes);
  copy_payload(frame, parsed, message);
  answer_icmpv6_echo(parsed, message);
}

void Stack::Impl::on_neighbour_message(TimePoint now, RxFrame& frame,
                                       const wire::ParsedFrame& parsed,
                                       const wire::NeighbourMessage& message) {
  const StackConfig& config = context.config;
  const IpAddress own = config.address.address;
  // A host that probes an address has none yet (RFC 4862 section 5.4.3).
  const bool is_probe = parsed.ip.source == IpAddress();
  if (!is_probe && !config.address.may_be_host(parsed.ip.source)) {
    ++context.counters.rx_not_for_us;
    return;
  }
  const MacAddress from = message.mac.value_or(parsed.ethernet.source);
  const bool is_of_others = is_station(from) && from != config.mac;
  const bool claims_our_address =
      message.target == own && is_of_others && (message.is_advertisement || is_probe);
  if (claims_our_address && now < probed_until) duplicate = from;
  bool reply = claims_our_address && is_probe;
  if (reply)
    ++context.counters.arp_own_address_claimed;
  else if (!is_probe)
    on_neighbour_change(context.neighbours.on_message(now, message, parsed.ip.source,
                                                      parsed.ethernet.source, reply));
  if (context.routers && context.neighbours.take_news()) review_routers(now);
  if (is_of_others) pass_on(frame);
  if (!reply || duplicate || context.was_handed_over(frame)) return;
  // To a probe all hosts are told (RFC 4861 section 7.2.4). While our own probe runs, an entry that
  // names another host is left alone (RFC 4429 section 3.3).
  const IpAddress to = is_probe ? wire::kAllNodes : parsed.ip.source;
  write_neighbour_message({.is_advertisement = true,
                           .target = own,
                           .mac = config.mac,
                           .is_router = false,
                           .is_solicited = !is_probe,
                           .overrides = now >= probed_until},
                          own, to, is_probe ? wire::group_mac(to) : from);
}

void Stack::Impl::write_neighbour_message(const wire::NeighbourMessage& message, IpAddress source,
                                          IpAddress destination, MacAddress to) {
  TxFrame* frame = add_control_frame(to, wire::EtherType::kIpv6, context.config.dscp);
  if (frame == nullptr) return;
  std::byte* ip = frame->header.data() + frame->l2_bytes;
  const std::size_t size =
      wire::emit_neighbour_message(message, source, destination, ip + wire::kIpv6Bytes);
  wire::emit_ipv6({.source = source,
                   .destination = destination,
                   .protocol = wire::IpProtocol::kIcmpv6,
                   .dscp = context.config.dscp,
                   .hop_limit = wire::kNdpHopLimit,
                   .payload_bytes = static_cast<std::uint16_t>(size)},
                  ip);
  frame->l3_bytes = wire::kIpv6Bytes;
  frame->header_bytes = static_cast<std::uint16_t>(frame->l2_bytes + wire::kIpv6Bytes + size);
}

// From the unspecified address unless ours is link-local: a report is for this link's switches and
// routers.
void Stack::Impl::write_mld_report() {
  TxFrame* frame = add_control_frame(wire::group_mac(wire::kMldRouters), wire::EtherType::kIpv6,
                                     context.config.dscp);
  if (frame == nullptr) return;
  const IpAddress own = context.config.address.address;
  const IpAddress source = own.is_link_local_v6() ? own : IpAddress();
  std::byte* ip = frame->header.data() + frame->l2_bytes;
  const std::size_t size =
      wire::emit_mld_report(wire::solicited_node(own), source, ip + wire::kIpv6Bytes);
  wire::emit_ipv6({.source = source,
                   .destination = wire::kMldRouters,
                   .protocol = wire::IpProtocol{0},  // A hop-by-hop header follows.
                   .dscp = context.config.dscp,
                   .hop_limit = 1,
                   .payload_bytes = static_cast<std::uint16_t>(size)},
                  ip);
  frame->l3_bytes = wire::kIpv6Bytes;
  frame->header_bytes = static_cast<std::uint16_t>(frame->l2_bytes + wire::kIpv6Bytes + size);
}

// RFC 4862 section 5.4.2; once per NIC, but each of its stacks hears the answer.
void Stack::Impl::probe_own_address(TimePoint now) {
  probe_due = false;
  probed_until = now + kProbeTime;
  if (context.config.shard.index != 0) return;
  const IpAddress own = context.config.address.address;
  const IpAddress group = wire::solicited_node(own);
  write_mld_report();
  write_neighbour_message({.target = own}, IpAddress(), group, wire::group_mac(group));
}

void Stack::Impl::answer_icmpv6_echo(const wire::ParsedFrame& parsed,
                                     std::span<std::byte> message) {
  TxFrame* reply =
      add_control_frame(parsed.ethernet.source, wire::EtherType::kIpv6, parsed.ip.dscp);
  if (reply == nullptr) return;
  const IpAddress own = context.config.address.address;
  wire::make_icmpv6_echo_reply(own, parsed.ip.source, message);
  wire::emit_ipv6({.source = own,
                   .destination = parsed.ip.source,
                   .protocol = wire::IpProtocol::kIcmpv6,
                   .dscp = parsed.ip.dscp,
                   .payload_bytes = static_cast<std::uint16_t>(message.size())},
                  reply->header.data() + reply->l2_bytes);
  reply->l3_bytes = wire::kIpv6Bytes;
  reply->header_bytes = static_cast<std::uint16_t>(reply->l2_bytes + wire::kIpv6Bytes);
  reply->fragment_count = 1;
  reply->fragments[0] = {message.data(), static_cast<std::uint32_t>(message.size()), kUnmapped};
  reply->payload_bytes = static_cast<std::uint32_t>(message.size());
  reply->copy_payload = true;
}

}  // namespace ztcp::tcp
