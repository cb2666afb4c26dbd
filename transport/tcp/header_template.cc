// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/header_template.h"

#include <cstring>

#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"

namespace ztcp::tcp {
namespace {

constexpr std::size_t kSequenceAt = 4;
constexpr std::size_t kAcknowledgmentAt = 8;
constexpr std::size_t kWindowAt = 14;
constexpr std::size_t kTimestampsAt = 24;  // After two NOPs, kind and length.

std::uint32_t fold(std::uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}

}  // namespace

std::size_t write_ethernet(const StackConfig& config, MacAddress to, wire::EtherType type,
                           std::uint8_t dscp, std::byte* out) {
  const auto by_dscp = static_cast<std::uint8_t>(dscp >> 3);
  return wire::emit_ethernet({.destination = to,
                              .source = config.mac,
                              .vlan_id = config.vlan_id,
                              .type = type,
                              .priority = config.vlan_priority.value_or(by_dscp)},
                             out);
}

void HeaderTemplate::build(const StackConfig& config, std::uint8_t dscp, MacAddress to,
                           std::uint16_t local_port, Endpoint remote, std::uint32_t flow_label,
                           bool with_timestamps) {
  bytes_.fill({});
  std::byte* p = bytes_.data();
  is_ipv6_ = config.is_ipv6();
  const auto type = is_ipv6_ ? wire::EtherType::kIpv6 : wire::EtherType::kIpv4;
  l2_bytes_ = static_cast<std::uint8_t>(write_ethernet(config, to, type, dscp, p));
  l3_bytes_ = static_cast<std::uint8_t>(config.ip_header_bytes());
  tcp_at_ = static_cast<std::uint8_t>(l2_bytes_ + l3_bytes_);
  offload_ = config.tx_checksum_offload;
  ip_sum_ = 0;
  const IpAddress own = config.address.address;
  if (is_ipv6_) {
    length_at_ = static_cast<std::uint8_t>(l2_bytes_ + 4);
    length_counts_ = 0;
    ecn_shift_ = 4;
    wire::emit_ipv6(
        {.source = own, .destination = remote.address, .dscp = dscp, .flow_label = flow_label},
        p + l2_bytes_);
  } else {
    length_at_ = static_cast<std::uint8_t>(l2_bytes_ + 2);
    length_counts_ = wire::kIpv4Bytes;
    ecn_shift_ = 0;
    wire::emit_ipv4({.source = own.v4(), .destination = remote.address.v4(), .dscp = dscp},
                    p + l2_bytes_, /*offload=*/true);
    for (std::size_t i = 0; i < wire::kIpv4Bytes; i += 2)
      ip_sum_ += wire::load_be16(p + l2_bytes_ + i);
  }
  pseudo_sum_ = wire::pseudo_header_checksum(own, remote.address, 0).folded();

  wire::TcpHeader tcp;
  tcp.source_port = local_port;
  tcp.destination_port = remote.port;
  if (with_timestamps) tcp.options.timestamps = wire::Timestamps{};
  tcp_bytes_ = static_cast<std::uint8_t>(wire::emit_tcp(tcp, p + tcp_at_));
}

void HeaderTemplate::set_destination(MacAddress to) {
  std::memcpy(bytes_.data(), to.bytes.data(), to.bytes.size());
}

void HeaderTemplate::set_flow_label(std::uint32_t flow_label) {
  std::byte* ip = bytes_.data() + l2_bytes_;
  wire::store_be32(ip, (wire::load_be32(ip) & ~0xfffffU) | flow_label);
}

void HeaderTemplate::finish(wire::Ecn ecn, TxFrame& frame) const {
  const auto ecn_bits = static_cast<std::uint8_t>(ecn);
  frame.header[l2_bytes_ + 1U] |= std::byte{ecn_bits} << ecn_shift_;
  std::byte* tcp = frame.header.data() + tcp_at_;
  const std::size_t tcp_header = frame.header_bytes - tcp_at_;
  const auto tcp_bytes = static_cast<std::uint32_t>(tcp_header + frame.payload_bytes);
  const auto length = static_cast<std::uint16_t>(length_counts_ + tcp_bytes);
  wire::store_be16(frame.header.data() + length_at_, length);
  frame.checksum_offload = offload_;
  if (offload_) {
    // The link or NIC that cuts a super-segment adds the lengths.
    const std::uint32_t pseudo_length = frame.segment_size_bytes != 0 ? 0 : tcp_bytes;
    wire::store_be16(tcp + wire::kTcpChecksumOffset,
                     static_cast<std::uint16_t>(fold(pseudo_sum_ + pseudo_length)));
    return;
  }
  if (!is_ipv6_)
    wire::store_be16(frame.header.data() + l2_bytes_ + 10,
                     static_cast<std::uint16_t>(~fold(ip_sum_ + length + ecn_bits)));
  wire::Checksum sum;
  sum.add_u16(static_cast<std::uint16_t>(fold(pseudo_sum_ + tcp_bytes)));
  sum.add({tcp, tcp_header});
  for (std::size_t i = 0; i < frame.fragment_count; ++i)
    sum.add({frame.fragments[i].data, frame.fragments[i].size_bytes});
  wire::store_be16(tcp + wire::kTcpChecksumOffset, sum.finish());
}

void HeaderTemplate::write(const Fields& fields, TxFrame& frame) const {
  static_assert(sizeof bytes_ <= TxFrame::kHeaderCapacity);
  std::memcpy(frame.header.data(), bytes_.data(), sizeof bytes_);
  std::byte* tcp = frame.header.data() + tcp_at_;
  wire::store_be32(tcp + kSequenceAt, fields.seq.raw());
  wire::store_be32(tcp + kAcknowledgmentAt, fields.ack.raw());
  wire::store_be16(tcp + wire::kTcpFlagsOffset,
                   static_cast<std::uint16_t>(tcp_bytes_ / 4 << 12 | fields.flags.bits()));
  wire::store_be16(tcp + kWindowAt, fields.window);
  if (tcp_bytes_ > wire::kTcpBytes) {
    wire::store_be32(tcp + kTimestampsAt, fields.timestamps.value);
    wire::store_be32(tcp + kTimestampsAt + 4, fields.timestamps.echo);
  }
  frame.l2_bytes = l2_bytes_;
  frame.l3_bytes = l3_bytes_;
  frame.header_bytes = static_cast<std::uint16_t>(tcp_at_ + tcp_bytes_);
  finish(fields.ecn, frame);
}

void HeaderTemplate::write_with_options(const Fields& fields, const wire::TcpOptions& options,
                                        TxFrame& frame) const {
  std::memcpy(frame.header.data(), bytes_.data(), sizeof bytes_);
  std::byte* tcp = frame.header.data() + tcp_at_;
  const wire::TcpHeader header{.source_port = wire::load_be16(tcp),
                               .destination_port = wire::load_be16(tcp + 2),
                               .sequence = fields.seq.raw(),
                               .acknowledgment = fields.ack.raw(),
                               .window = fields.window,
                               .flags = fields.flags,
                               .options = options};
  const std::size_t tcp_header = wire::emit_tcp(header, tcp);
  frame.l2_bytes = l2_bytes_;
  frame.l3_bytes = l3_bytes_;
  frame.header_bytes = static_cast<std::uint16_t>(tcp_at_ + tcp_header);
  frame.payload_bytes = 0;
  frame.fragment_count = 0;
  frame.segment_size_bytes = 0;
  frame.copy_payload = false;
  finish(fields.ecn, frame);
}

}  // namespace ztcp::tcp
