// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Settings of a Stack, fixed at construction. Defaults are for peers in the same building; each
// field that a user may set has its line in config/schema.toml.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/address.h"
#include "core/clock.h"
#include "transport/tcp/congestion_control.h"
#include "transport/tcp/cubic.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"
#include "transport/wire/receive_spread.h"

namespace ztcp::tcp {

struct TcpSettings {
  // RFC 6298 requires a floor of 1 s, a thousand round trips here. Also never below four times the
  // longest recent poll gap.
  Duration rto_min = std::chrono::milliseconds(5);
  Duration rto_initial = std::chrono::milliseconds(200);
  // RFC 6298 (2.5) requires 60 s or more. Here an interrupted path is to be used again soon after
  // it is back: with intervals that go on doubling, the last try before the user timeout of 8 s
  // comes at 5 s, and an outage of 6 s would needlessly end the connection. Retries 2 s apart are
  // one packet each and cause no congestion.
  Duration rto_max = std::chrono::seconds(2);
  // SYN retransmissions stop and connect fails with kTimedOut after this long.
  Duration connect_timeout = std::chrono::seconds(20);
  // RFC 5482: data unacknowledged for this long fails the connection; while the peer keeps its
  // window closed, probes unanswered for this long.
  Duration user_timeout = std::chrono::seconds(8);
  // A connection that only receives probes its peer after this much silence; three unanswered
  // probes in a row, keepalive_interval apart, fail it.
  Duration keepalive_idle = std::chrono::seconds(3);
  Duration keepalive_interval = std::chrono::milliseconds(1500);
  // Longest delay of an acknowledgement by a peer for which Stream::expect_late_acks() was called.
  // Linux: TCP_DELACK_MIN of 40 ms, and a clock tick of up to 10. A peer that delays longer (RFC
  // 9293 MUST-40 allows 500 ms) gets a needless probe.
  Duration late_ack_delay = std::chrono::milliseconds(50);
  Duration time_wait = std::chrono::milliseconds(500);
  // Largest window advertised; ordinary memory, not credit. A connection begins with
  // kFirstWindowBytes, and gets more if more arrives in a round trip.
  static constexpr std::uint32_t kFirstWindowBytes = 4U << 20;
  std::uint32_t receive_window_bytes = 16U << 20;
  std::uint32_t initial_window_segments = 10;  // RFC 6928.
  MakeCongestionControl congestion_control = make_congestion_control<Cubic>;
  // On connections whose peer reports marked bytes precisely (RFC 9768); null: the same.
  MakeCongestionControl congestion_control_by_marks = nullptr;
  bool pacing = true;
  bool ecn = true;  // Offered and accepted (RFC 3168, RFC 9768).
  // A connection over IPv6 changes its flow label when its path is broken or congested.
  bool reroutes = true;
};

// One of several stacks that share a NIC, each with a queue of its own: a connection belongs to one
// of them, and segments that the NIC delivers to another queue are handed over (link/shards.h).
struct Shard {
  // Most out-of-order frames from other queues that a stack holds: their own queue lacks them, and
  // needs some to hand over the frame that these wait for.
  static constexpr std::size_t kMostHeldOfOthers = 16;

  std::uint8_t index = 0;
  std::uint8_t count = 1;
  // How the NIC chooses the queue; null: unknown, so it is observed.
  std::shared_ptr<const wire::ReceiveSpread> spread{};
};

struct StackConfig {
  MacAddress mac;
  IpPrefix address{Ipv4Address{}, 32};  // Its family is that of all connections.
  // The address is taken from a router's advertisement; until then it is unspecified ("::").
  bool finds_address = false;
  IpAddress gateway;  // Unspecified ("::"): none. May be outside the prefix (clouds with /32).
  // The gateway is a router that advertises itself. IPv6 only.
  bool finds_router = false;
  std::uint16_t vlan_id = 0;  // 0: untagged.
  // Priority of tagged frames, 0-7. Absent: the upper three bits of the packet's DSCP.
  std::optional<std::uint8_t> vlan_priority{};
  // Packets' DSCP, 0-63; a connection may have another one (Stream::set_dscp()).
  std::uint8_t dscp = 0;
  std::uint16_t mtu_bytes = 1500;
  bool tx_checksum_offload = false;
  std::uint32_t max_super_segment_bytes = 0;  // 0: the link can't segment; the stack cuts at MSS.
  std::size_t max_connections = 1024;
  // Limits for frames held out of order, over all connections, by RxFrame::charge_bytes and by
  // number: the memory that the link can spare (link::LinkCapabilities).
  std::size_t max_held_bytes = 16U << 20;
  std::size_t max_held_frames = 8192;
  std::uint16_t ephemeral_port_first = 32768;
  std::uint16_t ephemeral_port_last = 60999;
  Shard shard;
  // Processes of this host share the NIC, each with some of its queues: a peer's answer reaches
  // this stack only if the NIC chooses one of its queues for the port.
  bool shares_nic = false;
  TcpSettings tcp;

  bool is_ipv6() const { return !address.address.is_v4(); }
  std::uint16_t ip_header_bytes() const { return is_ipv6() ? wire::kIpv6Bytes : wire::kIpv4Bytes; }
  // No path carries less (RFC 8200 section 5), or is expected to (RFC 791).
  std::uint16_t least_packet_bytes() const { return is_ipv6() ? wire::kIpv6LeastMtuBytes : 576; }
};

}  // namespace ztcp::tcp
