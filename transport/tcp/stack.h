// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One NIC's userspace TCP/IP: ARP, IPv4, ICMP and every TCP connection on it. A value: no thread,
// no clock, no device, no allocation after construction, no log. Frames and time come in as
// arguments; frames to send and the next deadline come out.
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

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/frame.h"
#include "transport/core/result.h"
#include "transport/core/stream.h"
#include "transport/tcp/settings.h"
#include "transport/tcp/statistics.h"

namespace ztcp::tcp {

// Hears of connections arriving at a listening port.
class StreamAcceptor {
 public:
  // A connection from `remote` is established. Returns who will hear its events, or nullptr to
  // refuse it (the stack sends RST). on_open() is not called for accepted streams.
  virtual StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) = 0;

 protected:
  ~StreamAcceptor() = default;
};

// Everything counted, per stack. Plain, owned by the stack's thread; named for ztcp_stat.
struct Counters {
  std::uint64_t rx_segments = 0;
  std::uint64_t rx_bytes = 0;  // In-order payload handed up.
  std::uint64_t rx_out_of_order = 0;
  std::uint64_t rx_duplicate = 0;
  std::uint64_t rx_paws = 0;  // Segments with a timestamp older than the last one's.
  std::uint64_t rx_bad_checksum = 0;
  std::uint64_t rx_malformed = 0;
  std::uint64_t rx_not_for_us = 0;
  std::uint64_t rx_no_connection = 0;
  std::uint64_t rx_handed_over = 0;        // Segments of another stack's connections (Shard).
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
  std::uint64_t dsacked_segments = 0;    // Repeats that peers report as needless (RFC 2883).
  std::uint64_t reordered_segments = 0;  // Sent once and delivered behind later ones.
  std::uint64_t path_mtu_cuts =
      0;  // Connections that went on with smaller packets, or failed to open.
  std::uint64_t path_mtu_raises = 0;  // And with larger ones again.
  std::uint64_t challenge_acks = 0;
  std::uint64_t connections_opened = 0;
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_failed = 0;
  std::uint64_t syn_dropped_table_full = 0;
  std::uint64_t ports_passed_over = 0;  // The NIC puts their answers into another stack's queue.
  std::uint64_t arp_unresolved = 0;     // Connects that ended without their neighbour's answer.
  std::uint64_t arp_mac_changes = 0;    // A neighbour answers from another MAC than before.
  // Somebody claimed a neighbour's address and the neighbour still answers from where it was: two
  // hosts with one address, or a forger.
  std::uint64_t arp_conflicts = 0;
  std::uint64_t arp_own_address_claimed = 0;  // Another host says that our address is its own.
  std::uint64_t arp_bad_sender = 0;           // ARP from a group's MAC, from none, or from ours.
};

class Stack {
 public:
  // What its connections reserve: ordinary memory, touched as they come.
  static std::size_t reserved_bytes(const StackConfig& config);

  // Allocates everything it will ever use. `secret` seeds RFC 6528 sequence numbers and source
  // ports; give random bits in the product, a fixed value in tests.
  Stack(const StackConfig& config, std::array<std::uint64_t, 2> secret);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // --- The four verbs of the loop ----------------------------------------------------------------
  // Takes a burst. Sets `kept` on each frame it holds (out-of-order data, loans); those come back
  // through take_released(). All others are the caller's again on return.
  void on_frames(TimePoint now, std::span<RxFrame> frames);
  // Fires whatever is due at or before `now`.
  void on_timers(TimePoint now);
  // Fills up to out.size() frames that may leave at `now`: data by round robin over connections,
  // pending ACKs (one per connection per burst), ARP, RST. Returns how many. They count as sent.
  std::size_t collect(TimePoint now, std::span<TxFrame> out);
  // When on_timers() or, for paced data, collect() must next run; kNever when idle.
  TimePoint next_deadline() const;

  // What it shows to StreamEvents::on_bytes() may be lent, and its frame is kept until it is back.
  FrameLoans& loans();
  // Held frames that are done with; release them to the link. Returns how many were written.
  std::size_t take_released(std::span<RxFrame> out);

  // How long before `now` the turn before this one began; of every turn. RTO and TLP deadlines
  // stretch with the longest recent gap, so that a starved poller does not take its own absence for
  // loss.
  void note_poll_gap(TimePoint now, Duration gap);

  // --- Connections -------------------------------------------------------------------------------
  // Opens a connection from a random port of the ephemeral range. Events start after this call
  // returned.
  // Fails with kFull when the connection table is full, kNoRoute when no route leads there.
  Result<Stream*> connect(TimePoint now, Endpoint remote, StreamEvents& events);
  // Fails with kBusy when the port is taken.
  Status listen(std::uint16_t port, StreamAcceptor& acceptor);
  void unlisten(std::uint16_t port);

  // Makes a host answer on every connection with it, if it lives; and when one of them heard of it
  // last: TimePoint::min() where there is none. Both look at the whole table.
  void probe(IpAddress remote);
  TimePoint heard_from(IpAddress remote) const;

  // Places of the table that are taken; half-open ones give way to connect() and don't count.
  std::size_t connections() const;
  // Connections that still have something to say to the peer (data or FIN unacknowledged). Zero:
  // the process may end without a peer noticing anything missing.
  std::size_t unfinished() const;

  const Counters& counters() const;
  // What was found of the paths since it was asked last; nothing: no more.
  std::optional<PathMtuChange> take_path_change();
  // Tells of each connection that there is. Looks at the whole table.
  void for_each_connection(const std::function<void(const ConnectionStatistics&)>& tell) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztcp::tcp
