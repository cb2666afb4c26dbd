// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The implementation of Stack: the slots of all connections, the memory they share, and the path of
// frames from Ethernet to a connection. stack.cc: set-up and the calls; stack_input.cc,
// stack_icmp.cc and stack_icmpv6.cc: received frames; stack_routers.cc: advertisements of routers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/tcp/connection.h"
#include "transport/tcp/stack_context.h"
#include "transport/wire/header_run.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ndp.h"

namespace ztcp::tcp {

// Arrays for all connections, cut into equal parts. A part is not touched before its connection
// begins, so a table for a thousand costs only the memory of those in use.
class ConnectionMemory {
 public:
  explicit ConnectionMemory(const StackConfig& config);
  Sender::Memory part(std::uint32_t index);

 private:
  std::size_t records_each_;
  std::unique_ptr<std::byte[]> records_;
  std::unique_ptr<std::byte[]> pieces_;
  std::unique_ptr<std::byte[]> copied_;
};

struct Stack::Impl {
  Impl(const StackConfig& config, const std::array<std::uint64_t, 2>& secret);

  // Received frames.
  void on_frame(TimePoint now, RxFrame& frame);
  void on_tcp(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed);
  void on_segment_in_listen(TimePoint now, const wire::ParsedFrame& parsed);
  void on_unexpected(const wire::ParsedFrame& parsed);
  // `beyond`: the last sequence number of the connection that this one replaces.
  void on_syn(TimePoint now, const wire::ParsedFrame& parsed, std::optional<SeqNum> beyond);
  bool may_come_from(const wire::ParsedFrame& parsed) const;
  // Whether a frame that is not TCP is for this host.
  bool is_for_us(const wire::ParsedFrame& parsed) const;
  void on_arp(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed);
  void on_neighbour_change(const std::optional<Neighbours::Change>& change);
  // For stacks that share a NIC. hand_over(): if another stack owns the segment, hands it to that
  // one and returns true. pass_on(): passes a frame that concerns all stacks once around.
  bool hand_over(RxFrame& frame, const wire::ParsedFrame& parsed);
  void pass_on(RxFrame& frame) const;
  // stack_icmp.cc
  void on_icmp(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed);
  // False: it concerns none of our connections.
  bool on_icmp_error(TimePoint now, const wire::IcmpError& error);
  void answer_echo(const wire::ParsedFrame& parsed, std::span<std::byte> message);
  // Copies the first bytes of the frame's payload.
  static void copy_payload(const RxFrame& frame, const wire::ParsedFrame& parsed,
                           std::span<std::byte> out);
  // stack_icmpv6.cc
  void on_icmpv6(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed);
  void on_neighbour_message(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed,
                            const wire::NeighbourMessage& message);
  void answer_icmpv6_echo(const wire::ParsedFrame& parsed, std::span<std::byte> message);
  void write_neighbour_message(const wire::NeighbourMessage& message, IpAddress source,
                               IpAddress destination, MacAddress to);
  void write_mld_report();
  void probe_own_address(TimePoint now);
  // stack_routers.cc
  void on_router_advertisement(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed,
                               std::span<const std::byte> message);
  void on_router_timers(TimePoint now);
  TimePoint router_deadline() const;
  void use_advertised_address();
  void write_router_solicitation();
  // Chooses the router again, and moves connections off those that are of no use.
  void review_routers(TimePoint now);

  void end_turn(TimePoint now);
  void reap();
  // A free slot, if necessary by dropping a connection that no user knows; Demux::kNone: none. Our
  // own user (`for_us`) has priority over incoming connections.
  std::uint32_t take_slot(TimePoint now, bool for_us);
  // Sends the RST that a slot waits for, if a control frame is free.
  void hurry_reset(TimePoint now);
  // Ends a connection that no user knows, and frees its slot.
  void drop(Connection& connection);
  void drop_oldest(IntrusiveList<Connection>& line);
  void write_arp(const wire::ArpPacket& packet, MacAddress to);
  void write_request(const Neighbours::Request& request);
  // A frame with its Ethernet header, to be sent by the next collect(); nullptr: there is no room.
  TxFrame* add_control_frame(MacAddress to, wire::EtherType type, std::uint8_t dscp);
  void announce();

  StackContext context;
  ConnectionMemory memory;
  std::deque<Connection> connections;  // Never grows after construction.
  std::vector<std::uint32_t> free;
  WorkQueue touched;            // Connections with segments in this burst.
  wire::HeaderRun headers;      // Parses the current frame.
  std::vector<std::byte> echo;  // One ICMP message at a time is answered; more are dropped.
  // IPv6: duplicate address detection (RFC 4862 section 5.4).
  bool probe_due = false;
  TimePoint probed_until{};             // An answer before proves a duplicate.
  std::optional<MacAddress> duplicate;  // The host that has our address, too.
};

}  // namespace ztcp::tcp
