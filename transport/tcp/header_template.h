// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The headers of one connection's frames: constant fields are built once, the rest is patched in
// per segment. Owned by a Connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/address.h"
#include "core/frame.h"
#include "transport/tcp/seq_num.h"
#include "transport/tcp/settings.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::tcp {

class HeaderTemplate {
 public:
  struct Fields {
    SeqNum seq;
    SeqNum ack;
    wire::TcpFlags flags;
    std::uint16_t window = 0;  // Scaled.
    wire::Timestamps timestamps;
    wire::Ecn ecn = wire::Ecn::kNotCapable;
  };

  // `flow_label`: for IPv6.
  void build(const StackConfig& config, std::uint8_t dscp, MacAddress to, std::uint16_t local_port,
             Endpoint remote, std::uint32_t flow_label, bool with_timestamps);
  void set_destination(MacAddress to);
  // IPv6 only.
  void set_flow_label(std::uint32_t flow_label);

  // Writes the headers of a segment whose fragments are in place: with timestamps if it was built
  // with them, no other options.
  void write(const Fields& fields, TxFrame& frame) const;
  // Any other segment: options as given. For SYNs and SACKs; carries no payload.
  void write_with_options(const Fields& fields, const wire::TcpOptions& options,
                          TxFrame& frame) const;

  std::size_t tcp_header_bytes() const { return tcp_bytes_; }

 private:
  void finish(wire::Ecn ecn, TxFrame& frame) const;

  std::array<std::byte, 96> bytes_;  // Ethernet, VLAN, IPv6, TCP with timestamps: 90.
  std::uint8_t l2_bytes_ = 0;
  std::uint8_t l3_bytes_ = 0;
  std::uint8_t tcp_at_ = 0;
  std::uint8_t tcp_bytes_ = 0;
  std::uint8_t length_at_ = 0;      // IP's length field.
  std::uint8_t length_counts_ = 0;  // Bytes of the IP header that it counts.
  bool offload_ = false;
  bool is_ipv6_ = false;
  std::uint8_t ecn_shift_ = 0;    // In the IP header's second byte.
  std::uint32_t ip_sum_ = 0;      // Sum of the IPv4 header without length and checksum.
  std::uint32_t pseudo_sum_ = 0;  // Sum of the pseudo header without length.
};

// Writes the Ethernet header of a frame that belongs to no connection, such as ARP or an echo
// reply. A VLAN's priority may follow from `dscp`. Returns the bytes written.
std::size_t write_ethernet(const StackConfig& config, MacAddress to, wire::EtherType type,
                           std::uint8_t dscp, std::byte* out);

}  // namespace ztcp::tcp
