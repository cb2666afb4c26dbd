// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// From the first SYN until the connection is established: SYN-SENT and SYN-RECEIVED (RFC 9293
// sections 3.5 and 3.10.7.2 to 3.10.7.4).
#include <algorithm>
#include <cassert>

#include "transport/tcp/connection.h"

namespace ztcp::tcp {
namespace {

// With eight processes at each end one port in 64 is right. Ports that stay unanswered before the
// next ones are given more time:
constexpr std::uint32_t kAnswerRound = 128;
// All of so many are wrong once in ten million times.
constexpr std::uint32_t kMostRefused = 1024;

}  // namespace

void Connection::begin(TimePoint now, std::uint16_t local_port, Endpoint remote,
                       IpAddress next_hop) {
  assert(state_ == State::kClosed);
  events_ = nullptr;
  timestamps_ = sack_ = mac_known_ = syn_due_ = keepalive_due_ = active_ = reset_due_ = false;
  peer_window_shift_ = 0;
  // RFC 9293 section 3.7.1: the default without the option.
  peer_mss_bytes_ = context_.config.is_ipv6() ? 1220 : 536;
  acked_reported_ = 0;
  keepalives_ = 0;
  challenged_ = TimePoint::min();
  remote_ = remote;
  local_port_ = local_port;
  dscp_ = context_.config.dscp;
  heard_ = answered_ = opened_ = now;
  unreachable_ = nullptr;
  path_.reset();
  full_mss_bytes_ = cut_from_bytes_ = 0;
  path_told_ = false;
  raise_at_ = kNever;
  suspected_ = small_answered_ = {};
  ask_by_byte_ = false;
  reroutes_ = duplicate_reroutes_ = peer_flow_label_ = 0;
  has_told_reroute_ = false;
  sender_.reset();
  peer_scales_ = payload_lost_ = false;
  ports_tried_ = 0;
  seeks_port_ = peer_shares_nic_ = false;
  ports_refused_ = ports_unanswered_ = 0;
  choose_numbers(now);
  context_.neighbours.join(index_, next_hop);
  if (const auto mac = context_.neighbours.find(index_)) on_neighbour(*mac);
}

// For a SYN from local_port_ to remote_ that has not been sent yet.
void Connection::choose_numbers(TimePoint now) {
  const Endpoint local = context_.local(local_port_);
  iss_ = context_.unguessable.initial_sequence(now, local, remote_);
  clock_.offset = context_.unguessable.timestamp_offset(local, remote_);
  syn_sent_ = TimePoint::min();
  syn_retransmitted_ = false;
  ecn_.begin(context_.config.tcp.ecn);
  syn_timeout_ = seeks_port_ ? answer_timeout()
                             : std::max(context_.config.tcp.rto_initial, context_.rto_floor);
}

void Connection::open_active(TimePoint now, std::uint16_t local_port, Endpoint remote,
                             IpAddress next_hop, StreamEvents& events, bool peer_shares_nic) {
  begin(now, local_port, remote, next_hop);
  peer_shares_nic_ = peer_shares_nic;
  seeks_port_ = peer_shares_nic || context_.config.shares_nic;
  if (seeks_port_) syn_timeout_ = answer_timeout();
  events_ = &events;
  active_ = true;
  set_state(State::kSynSent);
  syn_due_ = true;
  // Until the neighbour answers there is no SYN to repeat; the connect timeout runs all the same.
  state_deadline_ = now + context_.config.tcp.connect_timeout;
  if (!mac_known_) context_.neighbours.resolve(now, index_);
  wake();
  schedule();
}

void Connection::open_passive(TimePoint now, const wire::ParsedFrame& syn, IpAddress next_hop,
                              std::optional<SeqNum> beyond) {
  begin(now, syn.tcp.destination_port, {syn.ip.source, syn.tcp.source_port}, next_hop);
  // The SYN's source MAC proves nothing, but it is the only address to answer while the neighbour
  // is unresolved. If it differs from the resolved one, the neighbour is confirmed again.
  if (!mac_known_)
    on_neighbour(syn.ethernet.source);
  else if (mac_ != syn.ethernet.source)
    context_.neighbours.confirm(now, index_);
  // RFC 6528's clock takes 4 us for each number; the earlier connection may have been faster.
  if (beyond && !iss_.after(*beyond)) iss_ = *beyond + 1 + (iss_.raw() & 0xffff);
  state_deadline_ = now + syn_timeout_;
  take_syn(now, syn.tcp);
  peer_flow_label_ = syn.ip.flow_label;
  ecn_.take_syn(syn.tcp.flags, syn.ip.ecn);
  enter_syn_received();
  schedule();
}

// RSS delivers the peer's segments for this port to another queue than ours. False: no other port
// is worth a try, and the other queue hands the segments over.
bool Connection::try_next_port(TimePoint now, const wire::TcpHeader& syn_ack) {
  if (!context_.ports.may_try_another(++ports_tried_)) return false;
  const std::uint16_t left = local_port_;
  if (!take_next_port(now)) return false;
  context_.send_reset({.to = mac_,
                       .remote = remote_,
                       .local_port = left,
                       .seq = SeqNum(syn_ack.acknowledgment),
                       .ack = {},
                       .with_ack = false,
                       .dscp = dscp_});
  return true;
}

// The SYN was refused, or not answered in time: its port leads to another process of the peer's
// host, or the answer to one of ours. Processes that get such a segment reset its connection, so
// nothing is left of it. False: no other port is worth a try.
bool Connection::leave_port(TimePoint now, bool was_refused) {
  if (was_refused && (!peer_shares_nic_ || ++ports_refused_ > kMostRefused)) return false;
  // RFC 1122 section 2.3.2.1: a silent peer may have moved to another MAC address.
  if (!was_refused && ++ports_unanswered_ % kAnswerRound == 0)
    context_.neighbours.confirm(now, index_);
  return take_next_port(now);
}

bool Connection::take_next_port(TimePoint now) {
  const auto late = seeks_port_ ? context_.fitting_ports.take(remote_) : std::nullopt;
  const bool fits = late && (*late == local_port_ || context_.is_free(remote_, *late));
  const auto port = fits ? late : context_.choose_port(remote_, ports_tried_);
  if (!port) return false;
  ++context_.counters.ports_passed_over;
  context_.demux.remove(key());
  local_port_ = *port;
  context_.demux.insert(key(), index_);
  choose_numbers(now);
  if (fits) syn_timeout_ = std::max(context_.config.tcp.rto_initial, context_.rto_floor);
  state_deadline_ = std::min(now + syn_timeout_, opened_ + handshake_timeout());
  syn_due_ = true;
  wake();
  schedule();
  return true;
}

// For the answer to a SYN while a port is sought. Short, since most ports are not answered; a port
// whose answer comes later is tried again (FittingPorts). It grows, for a peer that is down.
Duration Connection::answer_timeout() const {
  constexpr Duration kFirst = std::chrono::milliseconds(2);
  const Duration timeout = kFirst * (1U << std::min(ports_unanswered_ / kAnswerRound, 8U));
  return std::min(timeout, context_.config.tcp.rto_initial);
}

// Takes the options that the peer offers in its SYN or SYN-ACK.
void Connection::take_syn(TimePoint now, const wire::TcpHeader& syn) {
  const wire::TcpOptions& options = syn.options;
  irs_ = SeqNum(syn.sequence);
  timestamps_ = options.timestamps.has_value();
  sack_ = options.sack_permitted;
  peer_mss_bytes_ = options.mss_bytes.value_or(peer_mss_bytes_);
  // RFC 7323 section 2.2: a window is scaled only if both sides offer it, and a SYN's own window
  // never is: until a later segment opens it, at most 65535 bytes are offered.
  peer_scales_ = options.window_scale.has_value();
  peer_window_shift_ = options.window_scale.value_or(0);
  Receiver::Window window = agreed_window();
  window.bytes = std::min<std::uint32_t>(window.bytes, 65535);
  receiver_.begin(now, {.next = irs_ + 1,
                        .window = window,
                        .timestamps = timestamps_,
                        .timestamp = timestamps_ ? options.timestamps->value : 0,
                        .sack = sack_});
}

void Connection::enter_syn_received() {
  build_header();
  set_state(State::kSynReceived);
  syn_due_ = true;
  wake();
}

Receiver::Window Connection::agreed_window() const {
  Receiver::Window window = context_.window;
  if (peer_scales_) return window;
  window.scale = 0;
  window.bytes = std::min<std::uint32_t>(window.bytes, 65535);
  window.field = static_cast<std::uint16_t>(window.bytes);
  return window;
}

// Both SYNs are known: the offered options become the agreed ones.
void Connection::establish(TimePoint now, const wire::TcpHeader& tcp) {
  // RFC 6691: options reduce the payload below the MSS. An MSS below kLeastMssBytes is raised to
  // it.
  const std::uint32_t option_bytes = timestamps_ ? wire::kTimestampOptionBytes : 0;
  const std::uint32_t mss = std::min<std::uint32_t>(
      std::max<std::uint16_t>(peer_mss_bytes_, kLeastMssBytes), context_.mss_bytes());
  // A SYN's window is never scaled (RFC 7323 section 2.2); an ACK's is.
  const unsigned shift = tcp.flags.has(wire::kSyn) ? 0U : peer_window_shift_;
  sender_.begin(now, {.first = iss_ + 1,
                      .mss_bytes = mss - option_bytes,
                      .peer_window_bytes = std::uint32_t{tcp.window} << shift,
                      .timestamps = timestamps_,
                      .sack = sack_,
                      .ecn = ecn_.mode(),
                      .ecn_changed = ecn_.is_changed(),
                      .clock = clock_});
  sender_.set_max_super_segment(context_.config.max_super_segment_bytes);
  receiver_.open_window(agreed_window());
  if (ecn_.is_changed()) [[unlikely]]
    ++context_.counters.ecn_faults;
  receiver_.begin_ecn(ecn_.mode(), ecn_.came_with(), /*answers=*/tcp.flags.has(wire::kSyn));
  if (peer_scales_) receiver_.begin_measuring(now, context_.config.tcp.receive_window_bytes);
  wl1_ = SeqNum(tcp.sequence);
  wl2_ = SeqNum(tcp.acknowledgment);
  build_header();
  heard_ = spoke_ = now;
  state_deadline_ = kNever;
  set_state(State::kEstablished);
  if (!syn_retransmitted_) sender_.rtt().on_sample(now, now - syn_sent_);
  full_mss_bytes_ = sender_.mss_bytes();
  if (sack_) path_.begin(now, PathProbe::Cause::kConnect);
}

// False: the user closed it in on_open().
bool Connection::report_open(TimePoint now) {
  ++context_.counters.connections_opened;
  if (events_ != nullptr) events_->on_open(now, *this);
  return state_ != State::kClosed;
}

// Section 3.10.7.3.
void Connection::on_segment_in_syn_sent(TimePoint now, RxFrame& frame,
                                        const wire::ParsedFrame& parsed) {
  const wire::TcpHeader& tcp = parsed.tcp;
  const bool has_ack = tcp.flags.has(wire::kAck);
  const bool ack_good = has_ack && SeqNum(tcp.acknowledgment) == iss_ + 1;
  if (has_ack && !ack_good) {
    // Before the peer's MAC is known no SYN was sent, so there is no address to send the reset to.
    if (!tcp.flags.has(wire::kRst) && mac_known_)
      context_.send_reset({.to = mac_,
                           .remote = remote_,
                           .local_port = local_port_,
                           .seq = SeqNum(tcp.acknowledgment),
                           .ack = {},
                           .with_ack = false,
                           .dscp = dscp_});
    return;
  }
  if (tcp.flags.has(wire::kRst)) {
    if (ack_good && !leave_port(now, /*was_refused=*/true))
      fail(now, Errc::kRefused, "tcp connect");
    return;
  }
  if (!tcp.flags.has(wire::kSyn)) return;
  if (has_ack && context_.ports.is_shared()) [[unlikely]] {
    const bool is_astray = context_.was_handed_over(frame);
    if (is_astray && try_next_port(now, tcp)) return;
    context_.ports.note_luck(!is_astray);
  }

  take_syn(now, tcp);
  if (!has_ack) {  // Simultaneous open (section 3.5, MUST-10).
    ecn_.give_up();
    enter_syn_received();
    return;
  }
  peer_flow_label_ = parsed.ip.flow_label;
  ecn_.take_syn_ack(tcp.flags, parsed.ip.ecn);
  establish(now, tcp);
  receiver_.request_ack();
  if (!report_open(now)) return;
  // Payload in the SYN-ACK begins one number later.
  if (process_payload(now, frame, parsed, irs_ + 1)) process_fin(now, parsed, irs_ + 1);
}

// In SYN-RECEIVED: the peer's SYN again or, after a simultaneous open, its SYN-ACK.
void Connection::on_syn_again(TimePoint now, const wire::ParsedFrame& parsed) {
  const wire::TcpHeader& tcp = parsed.tcp;
  if (!tcp.flags.has(wire::kAck)) {  // Our SYN-ACK got lost.
    ecn_.take_syn(tcp.flags, parsed.ip.ecn);
    reroute(Reroute::Cause::kDuplicates, reroutes_ + 1);
    syn_due_ = true;
    wake();
  } else if (active_ && SeqNum(tcp.acknowledgment) == iss_ + 1) {
    receiver_.request_ack();
    on_syn_acked(now, parsed);
  } else {
    challenge(now);
  }
}

// SYN-RECEIVED ends: the peer has acknowledged our SYN.
bool Connection::on_syn_acked(TimePoint now, const wire::ParsedFrame& parsed) {
  ecn_.take_last_ack(parsed.tcp.flags);
  establish(now, parsed.tcp);
  if (!context_.neighbours.find(index_)) context_.neighbours.confirm(now, index_);
  if (timestamps_ && parsed.tcp.options.timestamps)
    receiver_.note_timestamp(now, SeqNum(parsed.tcp.sequence),
                             parsed.tcp.options.timestamps->value);
  return active_ ? report_open(now) : accept(now);
}

// Hands the connection to the listener.
bool Connection::accept(TimePoint now) {
  StreamAcceptor* acceptor = context_.find_listener(local_port_);
  StreamEvents* events = acceptor == nullptr ? nullptr : acceptor->on_accept(now, *this, remote_);
  if (state_ == State::kClosed) return false;  // Aborted by the acceptor.
  if (events == nullptr) {
    abort();
    return false;
  }
  events_ = events;
  ++context_.counters.connections_accepted;
  return true;
}

}  // namespace ztcp::tcp
