// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One NIC's userspace TCP/IP: ARP, IPv4 and ICMP, or IPv6, ICMPv6 and neighbour discovery, and
// every TCP connection on it. A value: no thread, no clock, no device, no allocation after
// construction, no log. Frames and time come in as arguments; frames to send and the next deadline
// come out.
//
// Owned by the one thread that owns the NIC (ustack::Engine in the product, a test's World in the
// simulator).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/address.h"
#include "core/clock.h"
#include "core/frame.h"
#include "core/result.h"
#include "core/stream.h"
#include "transport/tcp/settings.h"
#include "transport/tcp/statistics.h"

namespace ztcp::tcp {

// Told of connections that arrive at a listening port.
class StreamAcceptor {
 public:
  // A connection from `remote` is established. Returns the receiver of its events, or nullptr to
  // refuse it (the stack sends RST). on_open() is not called for accepted streams.
  virtual StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) = 0;

 protected:
  ~StreamAcceptor() = default;
};

// All counters of a stack. Plain, owned by the stack's thread; named for ztcp_stat.
struct Counters {
  std::uint64_t rx_segments = 0;
  std::uint64_t rx_bytes = 0;  // In-order payload delivered.
  std::uint64_t rx_out_of_order = 0;
  std::uint64_t rx_duplicate = 0;
  std::uint64_t rx_paws = 0;  // Segments with a timestamp older than the last one's.
  std::uint64_t rx_bad_checksum = 0;
  std::uint64_t rx_malformed = 0;
  std::uint64_t rx_not_for_us = 0;
  std::uint64_t rx_no_connection = 0;
  std::uint64_t rx_handed_over = 0;        // Segments for another stack's connections (Shard).
  std::uint64_t rx_dropped_no_memory = 0;  // Out-of-order frames beyond their share of the pool.
  std::uint64_t rx_dropped_of_others = 0;  // Out-of-order frames beyond Shard::kMostHeldOfOthers.
  std::uint64_t tx_segments = 0;
  std::uint64_t tx_bytes = 0;  // Payload, first transmissions.
  std::uint64_t tx_retransmitted_bytes = 0;
  std::uint64_t tx_resets = 0;
  std::uint64_t rto_fired = 0;
  std::uint64_t tlp_fired = 0;
  std::uint64_t rack_recoveries = 0;
  std::uint64_t spurious_recoveries = 0;
  std::uint64_t dsacked_segments = 0;    // Retransmissions that peers report as needless (RFC
                                         // 2883).
  std::uint64_t reordered_segments = 0;  // Sent once and delivered after later ones.
  std::uint64_t rx_ce_segments = 0;      // Data with a congestion mark (ECN).
  std::uint64_t ecn_echoes = 0;          // ACKs that report marks on our data.
  std::uint64_t ecn_reductions = 0;      // Congestion windows reduced for marks.
  std::uint64_t ecn_faults = 0;          // Connections without ECN because the path falsifies it.
  std::uint64_t path_mtu_cuts =
      0;  // Connections that went on with smaller packets, or failed to open.
  std::uint64_t path_mtu_raises = 0;  // Connections that returned to larger ones.
  std::uint64_t control_changes = 0;  // Connections that chose another congestion control.
  std::uint64_t reroutes = 0;         // Flow labels changed to leave a path.
  std::uint64_t challenge_acks = 0;
  std::uint64_t connections_opened = 0;
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_failed = 0;
  std::uint64_t syn_dropped_table_full = 0;
  std::uint64_t ports_passed_over = 0;  // Their answers came to another queue, or none came.
  // ARP, and neighbour discovery for an IPv6 address.
  std::uint64_t arp_unresolved = 0;   // Connects that failed without an ARP reply.
  std::uint64_t arp_mac_changes = 0;  // A neighbour answers from another MAC than before.
  // Another host claimed a neighbour's address, and the neighbour still answers from its old MAC:
  // two hosts with one address, or a forged packet.
  std::uint64_t arp_conflicts = 0;
  std::uint64_t arp_own_address_claimed = 0;  // Another host claims our address.
  std::uint64_t arp_bad_sender = 0;           // ARP from a multicast MAC, a zero MAC, or ours.
};

class Stack {
 public:
  // Memory that a stack's connections reserve: ordinary memory, touched as they are used.
  static std::size_t reserved_bytes(const StackConfig& config);

  // Allocates everything it will ever use. `secret` seeds RFC 6528 sequence numbers and source
  // ports; pass random bits in the product, a fixed value in tests.
  Stack(const StackConfig& config, std::array<std::uint64_t, 2> secret);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // --- The four calls of the loop ----------------------------------------------------------------
  //
  // Takes a burst. Sets `kept` on each frame it holds (out-of-order data, loans); those come back
  // through take_released(). All others are the caller's again on return.
  void on_frames(TimePoint now, std::span<RxFrame> frames);
  // Fires timers due at or before `now`.
  void on_timers(TimePoint now);
  // Fills up to out.size() frames that may leave at `now`: data by round-robin over connections,
  // pending ACKs (one per connection per burst), ARP, RST. Returns their number. They count as
  // sent.
  std::size_t collect(TimePoint now, std::span<TxFrame> out);
  // When on_timers() or, for paced data, collect() must next run; kNever when idle.
  TimePoint next_deadline() const;

  // The bytes passed to StreamEvents::on_bytes() may be lent; their frame is kept until it is given
  // back.
  FrameLoans& loans();
  // Held frames that are no longer needed, to be released to the link. Returns how many were
  // written.
  std::size_t take_released(std::span<RxFrame> out);

  // To be called each turn. `gap`: how long before `now` the previous turn began. RTO and TLP
  // deadlines stretch with the longest recent gap, so that a starved poller does not take its own
  // delay for loss.
  void note_poll_gap(TimePoint now, Duration gap);

  // --- Connections -------------------------------------------------------------------------------
  //
  // Opens a connection from a random port of the ephemeral range. Events start after this call has
  // returned.
  // Fails with kFull when the connection table is full, with kNoRoute when there is no route, with
  // kBadConfig when another host has our address.
  Result<Stream*> connect(TimePoint now, Endpoint remote, StreamEvents& events,
                          bool peer_shares_nic = false);
  // Fails with kBusy when the port is taken.
  Status listen(std::uint16_t port, StreamAcceptor& acceptor);
  void unlisten(std::uint16_t port);

  // probe() makes a host answer on every connection with it, if it lives; heard_from() is the last
  // time that one of them received a segment, TimePoint::min() without connections. Both scan the
  // whole table.
  void probe(IpAddress remote);
  TimePoint heard_from(IpAddress remote) const;

  // Connections in the table, except half-open ones, which give way to connect().
  std::size_t connections() const;
  // Connections with data or FIN unacknowledged. Zero: the process may end without data loss at any
  // peer.
  std::size_t unfinished() const;

  // To be called when the link came up after the stack was made: frames sent before were lost.
  // Tells neighbours of our address; an IPv6 address is probed, without waiting for the result (RFC
  // 4429).
  void announce();
  // The host that answered the probe of our IPv6 address: connect() fails from then on. Nothing: no
  // host did.
  std::optional<MacAddress> duplicate() const;

  // Our address: unspecified ("::") while StackConfig::finds_address has found none.
  IpAddress address() const;
  // The address found; nothing where the config names it.
  std::optional<TakenAddress> taken_address() const;
  // Its lifetime is over: connect() fails with kNoRoute, and connections that arrive are refused.
  bool has_lost_address() const;
  // Takes the address that another stack of the NIC has found. Stacks that share a NIC would else
  // take different ones, if two routers advertise two prefixes at a time.
  void take_address(const TakenAddress& taken);

  // Whether the stack still looks for a router: connect() to another network fails until then.
  bool awaits_router() const;

  const Counters& counters() const;
  // The next change of a path that was not fetched yet; nothing: no more.
  std::optional<PathMtuChange> take_path_change();
  // The same, of a connection that chose another congestion control.
  std::optional<CongestionControlChange> take_control_change();
  // The same, of a connection that left its path; once for each connection.
  std::optional<Reroute> take_reroute();
  // The same, of the router for new connections.
  std::optional<RouterChange> take_router_change();
  // The same, of the address that was taken from an advertisement.
  std::optional<AddressChange> take_address_change();
  // Calls tell() for each connection. Scans the whole table.
  void for_each_connection(const std::function<void(const ConnectionStatistics&)>& tell) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztcp::tcp
