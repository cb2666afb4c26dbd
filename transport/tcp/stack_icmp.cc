// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ICMP: errors that routers and hosts report for our segments (RFC 9293 section 3.9.2.2, with the
// checks of RFC 5927), and echo.
#include <algorithm>
#include <array>
#include <cstring>

#include "transport/tcp/stack_impl.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ipv4.h"

namespace ztcp::tcp {
namespace {

struct Verdict {
  const char* reason = "";
  bool hard = false;
};

// MUST-56, SHLD-26. The prohibitions, which RFC 1122 section 4.2.3.9 does not classify, are hard: a
// firewall does not change within the connect timeout, and its report is the reason a user needs.
Verdict judge(const wire::IcmpError& error) {
  using wire::IcmpError;
  if (error.type == IcmpError::kTimeExceeded) return {.reason = "icmp: time exceeded"};
  if (error.type == IcmpError::kParameterProblem) return {.reason = "icmp: parameter problem"};
  switch (error.code) {
    case IcmpError::kNet:
      return {.reason = "icmp: network unreachable"};
    case IcmpError::kHost:
      return {.reason = "icmp: host unreachable"};
    case IcmpError::kProtocol:
      return {.reason = "icmp: protocol unreachable", .hard = true};
    case IcmpError::kPort:
      return {.reason = "icmp: port unreachable", .hard = true};
    case IcmpError::kNetProhibited:
    case IcmpError::kHostProhibited:
    case IcmpError::kProhibited:
      return {.reason = "icmp: prohibited by a firewall", .hard = true};
    default:
      return {.reason = "icmp: destination unreachable"};
  }
}

}  // namespace

void Stack::Impl::copy_payload(const RxFrame& frame, const wire::ParsedFrame& parsed,
                               std::span<std::byte> out) {
  std::size_t at = 0;
  wire::for_each_piece(frame, parsed.payload_offset, out.size(), [&](auto piece) {
    std::memcpy(out.data() + at, piece.data(), piece.size());
    at += piece.size();
  });
}

void Stack::Impl::on_icmp(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed) {
  if (!wire::verify_icmp_checksums(frame, parsed)) {
    ++context.counters.rx_bad_checksum;
    return;
  }
  std::array<std::byte, wire::kIcmpErrorBytes> beginning;
  const auto head =
      std::span(beginning).first(std::min<std::size_t>(parsed.payload_bytes, beginning.size()));
  copy_payload(frame, parsed, head);
  if (const auto error = wire::parse_icmp_error(head)) {
    if (!on_icmp_error(now, *error)) pass_on(frame);
    return;
  }
  const auto request = wire::parse_icmp_echo(head);
  // The echo buffer is free again once the reply was sent.
  if (!request || !request->is_request || parsed.payload_bytes > echo.size() ||
      !context.control.empty())
    return;
  const std::span<std::byte> message = std::span(echo).first(parsed.payload_bytes);
  copy_payload(frame, parsed, message);
  answer_echo(parsed, message);
}

bool Stack::Impl::on_icmp_error(TimePoint now, const wire::IcmpError& error) {
  if (error.source.address != context.config.address.address) return true;  // Not for this host.
  const std::uint32_t index = context.demux.find(Demux::key(error.destination, error.source.port));
  if (index == Demux::kNone) return false;
  touched.push(index);
  const SeqNum quoted(error.sequence);
  if (error.type == wire::IcmpError::kUnreachable &&
      error.code == wire::IcmpError::kFragmentationNeeded) {
    connections[index].on_fragmentation_needed(now, quoted, error.next_hop_mtu_bytes);
    return true;
  }
  const Verdict verdict = judge(error);
  connections[index].on_unreachable(now, quoted, verdict.reason, verdict.hard);
  return true;
}

void Stack::Impl::answer_echo(const wire::ParsedFrame& parsed, std::span<std::byte> message) {
  const std::uint8_t dscp = parsed.ip.dscp;  // RFC 1122 section 3.2.1.6: the request's.
  TxFrame* reply = add_control_frame(parsed.ethernet.source, wire::EtherType::kIpv4, dscp);
  if (reply == nullptr) return;
  wire::make_echo_reply(message);
  const wire::Ipv4Header ip{
      .source = context.config.address.address.v4(),
      .destination = parsed.ip.source.v4(),
      .protocol = wire::IpProtocol::kIcmp,
      .dscp = dscp,
      .total_bytes = static_cast<std::uint16_t>(wire::kIpv4Bytes + message.size())};
  wire::emit_ipv4(ip, reply->header.data() + reply->l2_bytes);
  reply->l3_bytes = wire::kIpv4Bytes;
  reply->header_bytes = static_cast<std::uint16_t>(reply->l2_bytes + wire::kIpv4Bytes);
  reply->fragment_count = 1;
  reply->fragments[0] = {message.data(), static_cast<std::uint32_t>(message.size()), kUnmapped};
  reply->payload_bytes = static_cast<std::uint32_t>(message.size());
  reply->copy_payload = true;
}

}  // namespace ztcp::tcp
