// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Routers of a NIC that is to find its gateway or its address by itself (RFC 4861 section 6.3, RFC
// 4862 section 5.5): their advertisements, our solicitations, and the connections that change their
// router.
#include <algorithm>

#include "transport/tcp/stack_impl.h"
#include "transport/wire/router_advertisement.h"

namespace ztcp::tcp {

// `message` is whole. Every stack of the NIC hears it.
void Stack::Impl::on_router_advertisement(TimePoint now, RxFrame& frame,
                                          const wire::ParsedFrame& parsed,
                                          std::span<const std::byte> message) {
  const auto advertisement = wire::parse_router_advertisement(parsed.ip, message);
  if (!advertisement) {
    ++context.counters.rx_malformed;
    return;
  }
  const bool is_ours = parsed.ip.source == context.config.address.address ||
                       parsed.ethernet.source == context.config.mac;
  if (is_ours) {
    ++context.counters.rx_not_for_us;
    return;
  }
  if (context.advertised &&
      context.advertised->on_advertisement(now, parsed.ip.source, *advertisement))
    use_advertised_address();
  // Routers are asked from our address.
  if (context.routers && context.has_address()) {
    if (!context.routers->on_advertisement(now, parsed.ip.source, *advertisement)) {
      ++context.counters.rx_not_for_us;
      return;
    }
    review_routers(now);
  }
  if ((!context.routers || context.routers->has_one()) &&
      (!context.advertised || context.advertised->is_valid()))
    context.solicitor.stop();
  pass_on(frame);
}

void Stack::Impl::use_advertised_address() {
  const IpPrefix own = context.advertised->taken()->address;
  context.config.address = own;
  context.neighbours.set_address(own);
  context.ports.set_address(own.address);
  probe_due = true;
}

TimePoint Stack::Impl::router_deadline() const {
  TimePoint next = context.solicitor.next_deadline();
  if (context.routers) next = std::min(next, context.routers->next_deadline());
  if (context.advertised) next = std::min(next, context.advertised->next_deadline());
  return next;
}

void Stack::Impl::on_router_timers(TimePoint now) {
  const bool is_due = now >= router_deadline();
  if (is_due && context.advertised) {
    context.advertised->on_timers(now);
    if (context.has_lost_address()) context.solicitor.seek(now);
  }
  if (is_due && context.routers) context.routers->on_timers(now);
  if (context.solicitor.take(now)) write_router_solicitation();
  if (context.routers && (is_due || context.neighbours.take_news())) review_routers(now);
}

void Stack::Impl::write_router_solicitation() {
  TxFrame* frame = add_control_frame(wire::group_mac(wire::kAllRouters), wire::EtherType::kIpv6,
                                     context.config.dscp);
  if (frame == nullptr) return;  // The next one follows in seconds.
  std::byte* ip = frame->header.data() + frame->l2_bytes;
  const std::size_t size = wire::emit_router_solicitation(ip + wire::kIpv6Bytes);
  wire::emit_ipv6({.source = IpAddress(),
                   .destination = wire::kAllRouters,
                   .protocol = wire::IpProtocol::kIcmpv6,
                   .dscp = context.config.dscp,
                   .hop_limit = wire::kNdpHopLimit,
                   .payload_bytes = static_cast<std::uint16_t>(size)},
                  ip);
  frame->l3_bytes = wire::kIpv6Bytes;
  frame->header_bytes = static_cast<std::uint16_t>(frame->l2_bytes + wire::kIpv6Bytes + size);
}

void Stack::Impl::review_routers(TimePoint now) {
  Routers& routers = *context.routers;
  if (const auto change = routers.choose()) {
    context.neighbours.set_gateway(change->now);
    if (context.config.shard.index == 0) context.router_changes.add(*change);
  }
  routers.for_each_move(now, [&](std::uint32_t from, IpAddress left, std::uint32_t to) {
    const std::optional<MacAddress> mac = context.neighbours.find(to);
    context.neighbours.move_users(from, to, [&](std::uint32_t user) {
      // A connection with the router itself stays with it.
      if (user >= connections.size() || connections[user].remote().address == left) return false;
      connections[user].on_neighbour(*mac);
      return true;
    });
  });
}

}  // namespace ztcp::tcp
