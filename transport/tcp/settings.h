// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a Stack is told at construction. Defaults are for peers in the same building; each field
// has its line in config/schema.toml where a user may set it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/tcp/congestion_control.h"
#include "transport/tcp/cubic.h"
#include "transport/wire/receive_spread.h"

namespace ztcp::tcp {

struct TcpSettings {
  // RFC 6298 wants a floor of 1 s, a thousand round trips here. Also never below four times the
  // longest recent poll gap.
  Duration rto_min = std::chrono::milliseconds(5);
  Duration rto_initial = std::chrono::milliseconds(200);
  // RFC 6298 (2.5) wants 60 s or more. Here a path that was interrupted is to be in use again soon
  // after it is back: with intervals that go on doubling the last try before the user timeout of 8
  // s falls at 5 s, and an outage of 6 s would end what it need not. Tries 2 s apart are a packet
  // each and congest nothing.
  Duration rto_max = std::chrono::seconds(2);
  // SYN retransmissions stop and connect fails with kTimedOut after this long.
  Duration connect_timeout = std::chrono::seconds(20);
  // RFC 5482: data unacknowledged for this long fails the connection; while the peer keeps its
  // window shut, probes unanswered for this long.
  Duration user_timeout = std::chrono::seconds(8);
  // A connection that only receives probes its peer when it has been silent this long; three
  // unanswered probes in a row, keepalive_interval apart, fail it.
  Duration keepalive_idle = std::chrono::seconds(3);
  Duration keepalive_interval = std::chrono::milliseconds(1500);
  // How long a peer may keep an acknowledgement back of which Stream::expect_late_acks() was told.
  // Linux: TCP_DELACK_MIN of 40 ms, and a tick of its clock of up to 10. Who takes longer (RFC 9293
  // MUST-40 allows 500 ms) is asked once needlessly.
  Duration late_ack_delay = std::chrono::milliseconds(50);
  Duration time_wait = std::chrono::milliseconds(500);
  // Advertised at most; ordinary memory, not credit. A connection begins with kFirstWindowBytes,
  // and gets more where more arrives in a round trip.
  static constexpr std::uint32_t kFirstWindowBytes = 4U << 20;
  std::uint32_t receive_window_bytes = 16U << 20;
  std::uint32_t initial_window_segments = 10;  // RFC 6928.
  MakeCongestionControl congestion_control = make_congestion_control<Cubic>;
  bool pacing = true;
};

// One of several stacks that share a NIC, each on a queue of its own: a connection belongs to one
// of them, and what the NIC put into another's queue is handed over (link/shards.h).
struct Shard {
  // Of frames that came to other queues a stack holds no more early ones than this: so many are
  // missing where they came to, and the one that they wait for must still be handed over.
  static constexpr std::size_t kMostHeldOfOthers = 16;

  std::uint8_t index = 0;
  std::uint8_t count = 1;
  // How the NIC chooses the queue; null: it does not tell, and is watched.
  std::shared_ptr<const wire::ReceiveSpread> spread{};
};

struct StackConfig {
  MacAddress mac;
  Ipv4Prefix address;
  Ipv4Address gateway;        // 0.0.0.0: none. May be outside the prefix (clouds with /32).
  std::uint16_t vlan_id = 0;  // 0: untagged.
  std::uint16_t mtu_bytes = 1500;
  bool tx_checksum_offload = false;
  std::uint32_t max_super_segment_bytes = 0;  // 0: the link can't segment; the stack cuts at MSS.
  std::size_t max_connections = 1024;
  // Frames held out of order, all connections together, by RxFrame::charge_bytes and by number:
  // what the link can do without (link::LinkCapabilities).
  std::size_t max_held_bytes = 16U << 20;
  std::size_t max_held_frames = 8192;
  std::uint16_t ephemeral_port_first = 32768;
  std::uint16_t ephemeral_port_last = 60999;
  Shard shard;
  TcpSettings tcp;
};

}  // namespace ztcp::tcp
