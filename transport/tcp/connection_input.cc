// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Segment arrival, in the order of RFC 9293 section 3.10.7: one function per check; each returns
// whether to continue. A fast path in front handles nearly every segment.
#include <cassert>
#include <chrono>
#include <utility>

#include "transport/tcp/connection.h"

namespace ztcp::tcp {
namespace {

constexpr wire::TcpFlags kSpecial = wire::kSyn | wire::kFin | wire::kRst | wire::kUrg;

// RFC 5961 section 7 wants a limit and leaves the number open. It is per connection, because a
// shared one reveals other connections to off-path attackers (CVE-2016-5696).
constexpr Duration kChallengeInterval = std::chrono::milliseconds(10);

}  // namespace

// The next data in order, or an ACK without other content, on a connection with nothing unusual
// under way.
bool Connection::is_predicted(const wire::ParsedFrame& parsed) const {
  const wire::TcpHeader& tcp = parsed.tcp;
  const SeqNum ack(tcp.acknowledgment);
  return state_ == State::kEstablished && tcp.flags.has(wire::kAck) &&
         !tcp.flags.has_any(kSpecial) && SeqNum(tcp.sequence) == receiver_.rcv_nxt() &&
         parsed.payload_bytes <= receiver_.window().bytes && tcp.options.sack_count == 0 &&
         tcp.options.timestamps.has_value() == timestamps_ &&
         (!timestamps_ ||
          !timestamp_before(tcp.options.timestamps->value, receiver_.ts_recent())) &&
         sender_.snd_una().at_or_before(ack) && ack.at_or_before(sender_.snd_max());
}

void Connection::on_segment(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed) {
  if (is_predicted(parsed)) [[likely]] {
    heard_ = now;
    keepalives_ = 0;
    if (timestamps_)
      receiver_.note_timestamp(now, receiver_.rcv_nxt(), parsed.tcp.options.timestamps->value);
    take_ack(now, parsed);
    // A FIN that came ahead of its data may be next now.
    const SeqNum seq(parsed.tcp.sequence);
    if (parsed.payload_bytes > 0 && process_payload(now, frame, parsed, seq) &&
        receiver_.fin_is_next()) [[unlikely]]
      process_fin(now, parsed, seq);
    return;
  }
  if (state_ == State::kSynSent) {
    on_segment_in_syn_sent(now, frame, parsed);
    return;
  }
  if (state_ == State::kClosed) return;
  if (!check_sequence(now, parsed)) return;
  if (!check_reset(now, parsed)) return;
  if (!check_syn(now, parsed)) return;
  heard_ = now;
  keepalives_ = 0;
  if (!check_ack(now, parsed)) return;
  const SeqNum seq(parsed.tcp.sequence);
  if (!process_payload(now, frame, parsed, seq)) return;
  process_fin(now, parsed, seq);
}

// First, check sequence number: RFC 7323's PAWS, then section 3.10.7.4's table.
bool Connection::check_sequence(TimePoint now, const wire::ParsedFrame& parsed) {
  const wire::TcpHeader& tcp = parsed.tcp;
  const SeqNum seq(tcp.sequence);
  const bool reset = tcp.flags.has(wire::kRst);
  if (state_ == State::kSynReceived && seq == irs_ && tcp.flags.has(wire::kSyn) && !reset) {
    on_syn_again(now, parsed);
    return false;
  }
  if (timestamps_ && !reset) {
    // RFC 7323 section 3.2: once timestamps are agreed, segments without them are dropped.
    if (!tcp.options.timestamps) return false;
    if (!receiver_.passes_paws(now, tcp.options.timestamps->value)) {
      if (is_overtaken_ack(parsed)) {
        take_overtaken_ack(now, parsed);
        return false;
      }
      ++context_.counters.rx_paws;
      answer_sparingly(now);
      return false;
    }
  }
  const std::uint32_t length = parsed.payload_bytes + (tcp.flags.has(wire::kSyn) ? 1U : 0U) +
                               (tcp.flags.has(wire::kFin) ? 1U : 0U);
  if (!receiver_.is_acceptable(seq, length)) {
    if (reset) return false;
    // The peer is alive, and for a SYN RFC 5961 section 4.2 asks for the same answer.
    heard_ = now;
    keepalives_ = 0;
    // The peer repeats bytes that we acknowledged, from another MAC address: our ACKs may go to its
    // old one.
    if (parsed.ethernet.source != mac_) context_.neighbours.confirm(now, index_);
    if (parsed.payload_bytes > 0 && seq.before(receiver_.rcv_nxt())) {
      receiver_.on_duplicate(seq, parsed.payload_bytes);
      reroute_after_duplicate(parsed.ip.flow_label);
      wake();
    } else if (tcp.flags.has(wire::kFin)) {
      receiver_.request_ack();  // Our ACK of the FIN got lost.
      if (state_ == State::kTimeWait) state_deadline_ = now + context_.config.tcp.time_wait;
      wake();
    } else if (receiver_.is_overtaken(seq) && !tcp.flags.has(wire::kSyn)) {
      answer_sparingly(now);  // A keepalive, a probe or a late ACK: not an attacker's guess.
    } else {
      challenge(now);
    }
    return false;
  }
  return true;
}

// Second, check the RST bit: RFC 5961 section 3.2.
bool Connection::check_reset(TimePoint now, const wire::ParsedFrame& parsed) {
  if (!parsed.tcp.flags.has(wire::kRst)) return true;
  if (state_ == State::kTimeWait) {
    // RFC 1337: an old segment must not end TIME-WAIT.
  } else if (SeqNum(parsed.tcp.sequence) != receiver_.rcv_nxt()) {
    challenge(now);
  } else if (state_ != State::kSynReceived) {
    fail(now, Errc::kPeerClosed, "tcp reset");
  } else if (active_) {
    fail(now, Errc::kRefused, "tcp connect");
  } else {
    drop();
  }
  return false;
}

// Fourth, check the SYN bit: RFC 5961 section 4.2. (Third, security, does not apply.)
bool Connection::check_syn(TimePoint now, const wire::ParsedFrame& parsed) {
  if (!parsed.tcp.flags.has(wire::kSyn)) return true;
  challenge(now);
  return false;
}

// Fifth, check the ACK field.
bool Connection::check_ack(TimePoint now, const wire::ParsedFrame& parsed) {
  const wire::TcpHeader& tcp = parsed.tcp;
  if (!tcp.flags.has(wire::kAck)) return false;
  const SeqNum ack(tcp.acknowledgment);
  if (state_ == State::kSynReceived) {
    if (ack == iss_ + 1) return on_syn_acked(now, parsed);
    context_.send_reset({.to = mac_,
                         .remote = remote_,
                         .local_port = local_port_,
                         .seq = ack,
                         .ack = {},
                         .with_ack = false,
                         .dscp = dscp_});
    return false;
  }
  if (ack.after(sender_.snd_max()) ||
      ack.before(sender_.snd_una() - sender_.max_window_bytes())) {  // RFC 5961 section 5.2.
    challenge(now);
    return false;
  }
  // Not earlier: with a guessed sequence number, an attacker could otherwise make PAWS drop the
  // peer's segments.
  if (timestamps_)
    receiver_.note_timestamp(now, SeqNum(tcp.sequence), tcp.options.timestamps->value);
  take_ack(now, parsed);
  return state_ != State::kClosed;
}

void Connection::take_ack(TimePoint now, const wire::ParsedFrame& parsed) {
  const wire::TcpHeader& tcp = parsed.tcp;
  const SeqNum seq(tcp.sequence);
  const SeqNum ack(tcp.acknowledgment);
  // Section 3.10.7.4: only the newest segment updates the window.
  const bool newer = wl1_.before(seq) || (wl1_ == seq && wl2_.at_or_before(ack));
  if (newer) {
    wl1_ = seq;
    wl2_ = ack;
  }
  if (ack.before(sender_.snd_una())) {  // An old duplicate.
    take_overtaken_ack(now, parsed);
    return;
  }
  const std::uint32_t window_bytes = std::uint32_t{tcp.window} << peer_window_shift_;
  if (parsed.payload_bytes > 0 && tcp.options.sack_count == 0 && !path_.is_active() &&
      sender_.has_heard(ack, window_bytes))
    return;
  std::span<const wire::SackBlock> sack = tcp.options.sack_blocks();
  if (!sack.empty()) sack = take_path_answers(sack);
  if (path_.is_alone() && is_repeated_ack(parsed)) [[unlikely]]
    path_.stop();
  if (parsed.payload_bytes == 0) {
    answered_ = now;
    if (suspected_ != TimePoint{}) [[unlikely]]
      small_answered_ = now;
  }
  const bool was_acked = sender_.fin_acked();
  sender_.on_ack(now, {.ack = ack,
                       .window_bytes = window_bytes,
                       .window_valid = newer,
                       .pure = parsed.payload_bytes == 0 && !tcp.flags.has(wire::kFin),
                       .flags = tcp.flags,
                       .ecn_bytes = &tcp.options.ecn_bytes,
                       .has_timestamps = timestamps_ && tcp.options.timestamps.has_value(),
                       .timestamp_echo = tcp.options.timestamps ? tcp.options.timestamps->echo : 0,
                       .sack = sack});
  if (path_.is_active() && is_path_proven()) path_.stop();
  if (sender_.fin_acked() && !was_acked) on_fin_acked(now);
}

// PAWS would drop it, but it is a bare ACK of a moment ago whose numbers are current.
bool Connection::is_overtaken_ack(const wire::ParsedFrame& parsed) const {
  const wire::TcpHeader& tcp = parsed.tcp;
  const SeqNum seq(tcp.sequence);
  const SeqNum ack(tcp.acknowledgment);
  const bool is_bare =
      parsed.payload_bytes == 0 && tcp.flags.has(wire::kAck) && !tcp.flags.has_any(kSpecial);
  return is_synchronized() && is_bare &&
         (seq == receiver_.rcv_nxt() || receiver_.is_overtaken(seq)) &&
         ack.at_or_before(sender_.snd_una()) &&
         !ack.before(sender_.snd_una() - sender_.max_window_bytes()) &&
         receiver_.is_barely_old(tcp.options.timestamps->value);
}

// RFC 6675 section 5: every ACK's SACK blocks are used, also those of an overtaken ACK.
void Connection::take_overtaken_ack(TimePoint now, const wire::ParsedFrame& parsed) {
  std::span<const wire::SackBlock> sack = parsed.tcp.options.sack_blocks();
  if (sack.empty() || !sack_ || sender_.snd_una() == sender_.snd_max()) return;
  sack = take_path_answers(sack);
  if (!sack.empty()) sender_.on_overtaken_ack(now, SeqNum(parsed.tcp.acknowledgment), sack);
}

// An ACK that only a duplicate segment can have caused: it acknowledges nothing new, and nothing is
// in flight.
bool Connection::is_repeated_ack(const wire::ParsedFrame& parsed) const {
  const wire::TcpHeader& tcp = parsed.tcp;
  const SeqNum ack(tcp.acknowledgment);
  // A window update justifies an ACK, unless only its scale is new.
  const bool same_window =
      ack == iss_ + 1 || std::uint32_t{tcp.window} << peer_window_shift_ == sender_.window_bytes();
  return parsed.payload_bytes == 0 && !tcp.flags.has(wire::kFin) && tcp.options.sack_count == 0 &&
         ack == sender_.snd_una() && ack == sender_.snd_max() && same_window;
}

void Connection::on_fin_acked(TimePoint now) {
  switch (state_) {
    case State::kFinWait1:
      set_state(State::kFinWait2);
      if (events_ != nullptr) break;
      // A peer that never closes its side must not keep the slot.
      state_deadline_ = now + context_.config.tcp.user_timeout;
      if (payload_lost_) abort();
      break;
    case State::kClosing:
      enter_time_wait(now);
      break;
    case State::kLastAck:
      report_ended(now);
      if (state_ != State::kClosed) end();
      break;
    default:
      break;
  }
}

// Seventh, process the segment text. (Sixth, URG, is ignored: section 3.8.5 lets the bytes be
// ordinary ones.)
bool Connection::process_payload(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed,
                                 SeqNum seq) {
  if (parsed.payload_bytes == 0) return true;
  receiver_.note_ecn(parsed.ip.ecn, parsed.tcp.flags, parsed.payload_bytes);
  switch (state_) {
    case State::kEstablished:
      break;
    case State::kFinWait1:
    case State::kFinWait2:
      if (events_ == nullptr)
        return refuse_payload(seq, parsed.payload_bytes, parsed.tcp.flags.has(wire::kFin));
      break;
    default:
      return true;  // After the peer's FIN there is no payload.
  }
  return receiver_.on_payload(frame, seq, parsed.payload_offset, parsed.payload_bytes,
                              [&](std::span<const std::byte> bytes) {
                                if (events_ != nullptr)
                                  events_->on_bytes(now, bytes);
                                else
                                  payload_lost_ = true;  // Closed inside an earlier call.
                                return state_ != State::kClosed;
                              });
}

// Section 3.6.1, SHLD-3: after close() payload is refused, and RST tells the peer so. Not before
// the peer has our FIN, and with it all of our data: a reset overtakes lost segments. But if the
// peer has closed, too, it may wait for an acknowledgement of its own last bytes, which we refuse:
// so RST then.
bool Connection::refuse_payload(SeqNum seq, std::uint32_t length, bool has_fin) {
  if ((seq + length).at_or_before(receiver_.rcv_nxt())) {
    receiver_.on_duplicate(seq, length);
    return true;
  }
  payload_lost_ = true;
  if (state_ == State::kFinWait2 || has_fin) abort();
  return false;
}

// Eighth, check the FIN bit.
void Connection::process_fin(TimePoint now, const wire::ParsedFrame& parsed, SeqNum seq) {
  const bool may_end =
      state_ == State::kEstablished || state_ == State::kFinWait1 || state_ == State::kFinWait2;
  if (!may_end) return;
  if (parsed.tcp.flags.has(wire::kFin)) {
    if (payload_lost_ && events_ == nullptr) return abort();
    receiver_.note_fin(seq + parsed.payload_bytes);
    receiver_.request_ack();
  }
  if (!receiver_.fin_is_next()) return;
  receiver_.take_fin();
  const State before = state_;
  if (before == State::kEstablished) set_state(State::kCloseWait);
  // Our FIN is not acknowledged, otherwise the state were FIN-WAIT-2.
  if (before == State::kFinWait1) set_state(State::kClosing);
  if (events_ != nullptr) events_->on_closed(now);
  if (before == State::kFinWait2 && state_ == State::kFinWait2) enter_time_wait(now);
}

void Connection::enter_time_wait(TimePoint now) {
  set_state(State::kTimeWait);
  state_deadline_ = now + context_.config.tcp.time_wait;
  report_ended(now);
  // Only now: a user that dials inside on_ended() must not be given this slot.
  if (state_ == State::kTimeWait) context_.time_wait.push_back(*this);
}

// False: the user closed it.
bool Connection::report_acked(TimePoint now) {
  // SACKed bytes make room in the window before they are acknowledged.
  const bool has_news =
      sender_.acked_bytes() != acked_reported_ || sender_.scoreboard().sacked_bytes() > 0;
  if (events_ != nullptr && has_news) {
    acked_reported_ = sender_.acked_bytes();
    events_->on_acked(now, acked_reported_);
  }
  return state_ != State::kClosed;
}

// Both directions have ended: on_ended() for a user that called finish(), after its last
// on_acked().
void Connection::report_ended(TimePoint now) {
  report_acked(now);
  if (StreamEvents* events = std::exchange(events_, nullptr)) events->on_ended(now);
}

void Connection::challenge(TimePoint now) {
  if (answer_sparingly(now)) ++context_.counters.challenge_acks;
}

bool Connection::answer_sparingly(TimePoint now) {
  if (challenged_ != TimePoint::min() && now - challenged_ < kChallengeInterval) return false;
  challenged_ = now;
  receiver_.request_ack();
  wake();
  return true;
}

void Connection::take_news() {
  const Sender::News news = sender_.take_news();
  if (news.control_changed)
    context_.control_changes.add({.remote = remote_.address,
                                  .now = sender_.congestion().name(),
                                  .min_rtt = sender_.rtt().min_rtt()});
  if (news.path_congested) reroute(Reroute::Cause::kMarks, sender_.marked_rounds().told_rounds());
}

// Once per burst.
void Connection::end_turn(TimePoint now) {
  if (state_ == State::kClosed || !report_acked(now)) return;
  if (receiver_.next_measure() <= now) [[unlikely]]
    receiver_.measure(now, sender_.rtt().srtt());
  if (sender_.has_news()) [[unlikely]]
    take_news();
  wake();
  schedule();
}

}  // namespace ztcp::tcp
