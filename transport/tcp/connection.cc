// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/connection.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ztcp::tcp {
namespace {

const char* name_of(Connection::State state) {
  using State = Connection::State;
  switch (state) {
    case State::kClosed:
      return "CLOSED";
    case State::kSynSent:
      return "SYN-SENT";
    case State::kSynReceived:
      return "SYN-RECEIVED";
    case State::kEstablished:
      return "ESTABLISHED";
    case State::kFinWait1:
      return "FIN-WAIT-1";
    case State::kFinWait2:
      return "FIN-WAIT-2";
    case State::kCloseWait:
      return "CLOSE-WAIT";
    case State::kClosing:
      return "CLOSING";
    case State::kLastAck:
      return "LAST-ACK";
    case State::kTimeWait:
      return "TIME-WAIT";
  }
  return "";
}

}  // namespace

Connection::Connection(StackContext& context, std::uint32_t index, const Sender::Memory& memory)
    : context_(context),
      index_(index),
      receiver_(context.held, context.counters),
      sender_(memory, context.config.tcp, context.rto_floor, context.counters) {}

void Connection::set_state(State state) {
  unlink();
  // After a simultaneous open the connection has a user, so it does not count as half-open.
  const auto is_half_open = [&](State s) { return s == State::kSynReceived && !active_; };
  if (is_half_open(state)) context_.half_open.push_back(*this);
  if (is_half_open(state_)) --context_.half_open_count;
  if (is_half_open(state)) ++context_.half_open_count;
  state_ = state;
}

bool Connection::write(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
  if (!is_writable() || !sender_.write(copied, referenced)) return false;
  wake();
  return true;
}

void Connection::finish() {
  switch (state_) {
    case State::kEstablished:
      set_state(State::kFinWait1);
      break;
    case State::kCloseWait:
      set_state(State::kLastAck);
      break;
    default:
      return;
  }
  sender_.queue_fin();
  wake();
}

void Connection::close() {
  events_ = nullptr;
  if (state_ == State::kSynSent)
    end();
  else if (state_ == State::kSynReceived)  // Simultaneous open: the peer may have established it.
    abort();
  else
    finish();
}

void Connection::abort() {
  events_ = nullptr;
  if (state_ == State::kClosed) return;
  if (is_known_to_peer() && state_ != State::kTimeWait && mac_known_) {  // RFC 9293 section 3.10.5.
    reset_due_ = true;
    reset_seq_ = is_synchronized() ? sender_.snd_max() : iss_ + 1;
  }
  end();
  if (reset_due_) wake();
}

void Connection::set_dscp(std::uint8_t dscp) {
  dscp_ = dscp;
  if (is_known_to_peer()) build_header();  // Until then there is only the SYN, built when sent.
}

void Connection::drop() { end(); }

void Connection::end() {
  assert(state_ != State::kClosed);
  context_.neighbours.leave(index_);
  receiver_.clear();
  sender_.reset();
  set_state(State::kClosed);
  context_.retire(index_, key());
}

void Connection::fail(TimePoint now, Errc code, const char* where) {
  if (state_ == State::kClosed) return;
  StreamEvents* events = std::exchange(events_, nullptr);
  // A connection whose user has closed it does not count as failed.
  if (events != nullptr) {
    ++context_.counters.connections_failed;
    context_.health_at_end = health();
  }
  end();
  if (events != nullptr) events->on_failed(now, Error{code, 0, where});
}

void Connection::on_neighbour(MacAddress mac) {
  const bool moved = mac_known_ && mac != mac_;
  mac_ = mac;
  mac_known_ = true;
  // Before that only the SYN has headers, and frames already sent to the old address are lost.
  if (is_known_to_peer()) header_.set_destination(mac);
  if (moved && !is_synchronized() && syn_sent_ != TimePoint::min()) syn_due_ = true;
  if (state_ != State::kClosed) wake();
}

void Connection::on_unreachable(TimePoint now, SeqNum quoted, const char* reason, bool hard) {
  if (state_ == State::kClosed || state_ == State::kTimeWait) return;
  const bool of_ours = is_synchronized() ? sender_.is_in_flight(quoted) : quoted == iss_;
  if (!of_ours) return;
  if (!hard || is_synchronized()) {
    unreachable_ = reason;
    unreachable_at_ = now;
  } else if (active_) {
    fail(now, Errc::kNoRoute, reason);  // A router or host reported it, not the peer's TCP.
  } else {
    drop();
  }
}

ConnectionStatistics Connection::statistics() const {
  ConnectionStatistics out;
  out.state = name_of(state_);
  out.local = context_.local(local_port_);
  out.remote = remote_;
  out.opened = opened_;
  out.heard = heard_;
  if (!is_synchronized()) return out;  // Sender and Receiver have not begun.
  sender_.fill(out);
  receiver_.fill(out);
  out.full_mss_bytes = full_mss_bytes_;
  out.reroutes = reroutes_;
  return out;
}

StreamHealth Connection::health() const {
  if (state_ == State::kClosed) return context_.health_at_end;
  if (!is_synchronized()) return {};
  const ConnectionStatistics now = statistics();
  return {.heard = now.heard,
          .srtt = now.srtt,
          .cwnd_bytes = now.cwnd_bytes,
          .unacked_bytes = now.sent_bytes - now.acked_bytes,
          .retransmitted_bytes = now.retransmitted_bytes,
          .timeouts = now.timeouts,
          .marked_bytes = now.marked_bytes,
          .delivered_bytes = now.acked_bytes};
}

StreamStatistics Connection::stream_statistics(TimePoint now) const {
  const ConnectionStatistics from = statistics();
  StreamStatistics out;
  out.state = from.state;
  out.local = from.local;
  out.remote = from.remote;
  if (!is_synchronized()) return out;
  out.in_flight_bytes = from.in_flight_bytes;
  out.congestion_control = from.congestion_control;
  out.cwnd_bytes = from.cwnd_bytes;
  out.peer_window_bytes = from.peer_window_bytes;
  out.own_window_bytes = from.own_window_bytes;
  out.mss_bytes = from.mss_bytes;
  out.rtt_min = from.rtt_min;
  out.rtt = from.srtt;
  out.rtts = &sender_.rtts();
  out.unsent_bytes =
      from.send_queue_bytes - std::min(from.send_queue_bytes, from.sent_bytes - from.acked_bytes);
  out.sent_bytes = from.sent_bytes;
  out.received_bytes = from.received_bytes;
  out.retransmitted_bytes = from.retransmitted_bytes;
  out.needless_bytes = std::uint64_t{from.dsacked_segments} * from.mss_bytes;
  out.timeouts = from.timeouts;
  out.fast_recoveries = from.fast_recoveries;
  out.tail_probes = from.tail_probes;
  out.spurious_recoveries = from.spurious_recoveries;
  out.zero_windows = from.zero_windows;
  out.zero_window_time = sender_.zero_window_time(now);
  out.is_window_shut = sender_.window_bytes() == 0;
  return out;
}

StreamStall Connection::stall(TimePoint now) const {
  const Duration silence = now - answered_;
  if (!is_synchronized() || !sender_.has_unacked()) return {.is_acked = true, .silence = silence};
  const bool is_shut = sender_.window_bytes() == 0;
  return {.timeouts = is_shut ? 0U : static_cast<std::uint32_t>(sender_.backoff()),
          .is_shut = is_shut,
          .silence = silence};
}

bool Connection::is_unfinished() const {
  switch (state_) {
    case State::kClosed:
      return reset_due_;
    case State::kSynSent:
    case State::kSynReceived:
    case State::kFinWait2:
    case State::kTimeWait:
      return false;
    default:
      return sender_.has_unacked();
  }
}

bool Connection::may_be_replaced_by(const wire::TcpHeader& syn) const {
  if (state_ != State::kTimeWait) return false;
  // RFC 6191: a newer timestamp proves a newer connection; else a higher sequence number does.
  if (receiver_.timestamps() && syn.options.timestamps)
    return timestamp_before(receiver_.ts_recent(), syn.options.timestamps->value) ||
           (receiver_.ts_recent() == syn.options.timestamps->value &&
            SeqNum(syn.sequence).after(receiver_.rcv_nxt()));
  return SeqNum(syn.sequence).after(receiver_.rcv_nxt());
}

}  // namespace ztcp::tcp
