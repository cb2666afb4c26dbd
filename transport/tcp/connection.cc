// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/connection.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ztcp::tcp {

Connection::Connection(StackContext& context, std::uint32_t index, const Memory& memory)
    : context_(context),
      index_(index),
      receiver_(memory.ranges, context.held, context.counters),
      sender_(memory.sender, context.config.tcp, context.rto_floor, context.counters) {}

void Connection::set_state(State state) {
  unlink();
  if (state == State::kSynReceived) context_.half_open.push_back(*this);
  if (state == State::kTimeWait) context_.time_wait.push_back(*this);
  if (state_ == State::kSynReceived) --context_.half_open_count;
  if (state == State::kSynReceived) ++context_.half_open_count;
  state_ = state;
}

void Connection::begin(TimePoint now, std::uint16_t local_port, Endpoint remote,
                       Ipv4Address next_hop) {
  assert(state_ == State::kClosed);
  const Endpoint local = context_.local(local_port);
  events_ = nullptr;
  timestamps_ = sack_ = mac_known_ = syn_due_ = keepalive_due_ = active_ = reset_due_ = false;
  peer_window_shift_ = 0;
  peer_mss_bytes_ = 536;  // RFC 9293 section 3.7.1: a peer that names none.
  acked_reported_ = 0;
  keepalives_ = 0;
  challenged_ = TimePoint::min();
  remote_ = remote;
  local_port_ = local_port;
  next_hop_ = next_hop;
  heard_ = opened_ = now;
  iss_ = context_.unguessable.initial_sequence(now, local, remote);
  clock_.offset = context_.unguessable.timestamp_offset(local, remote);
  path_.stop();
  sender_.reset();
  syn_sent_ = TimePoint::min();
  syn_retransmitted_ = peer_scales_ = false;
  syn_timeout_ = std::max(context_.config.tcp.rto_initial, context_.rto_floor);
  if (const auto mac = context_.neighbours.find(next_hop)) on_neighbour(*mac);
}

void Connection::open_active(TimePoint now, std::uint16_t local_port, Endpoint remote,
                             Ipv4Address next_hop, StreamEvents& events) {
  begin(now, local_port, remote, next_hop);
  events_ = &events;
  active_ = true;
  set_state(State::kSynSent);
  syn_due_ = true;
  // Until the neighbour answers there is nothing to repeat; the connect timeout runs all the same.
  state_deadline_ = now + context_.config.tcp.connect_timeout;
  if (!mac_known_) context_.neighbours.resolve(now, next_hop);
  wake();
  schedule();
}

void Connection::open_passive(TimePoint now, const wire::ParsedFrame& syn, Ipv4Address next_hop) {
  begin(now, syn.tcp.destination_port, {syn.ip.source, syn.tcp.source_port}, next_hop);
  irs_ = SeqNum(syn.tcp.sequence);
  const wire::TcpOptions& options = syn.tcp.options;
  timestamps_ = options.timestamps.has_value();
  if (timestamps_) syn_timestamp_ = options.timestamps->value;
  sack_ = options.sack_permitted;
  peer_mss_bytes_ = options.mss_bytes.value_or(peer_mss_bytes_);
  // RFC 7323 section 2.2: a window is scaled only if both sides say so.
  peer_window_shift_ = options.window_scale.value_or(0);
  peer_scales_ = options.window_scale.has_value();
  set_state(State::kSynReceived);
  syn_due_ = true;
  state_deadline_ = now + syn_timeout_;
  wake();
  schedule();
}

// Both SYNs are known: what was offered becomes what is agreed.
void Connection::establish(TimePoint now, const wire::ParsedFrame& parsed) {
  // RFC 6691: options come out of the MSS. A peer below RFC 9293's least is not believed.
  const std::uint32_t option_bytes = timestamps_ ? wire::kTimestampOptionBytes : 0;
  const std::uint32_t mss = std::min<std::uint32_t>(
      std::max<std::uint16_t>(peer_mss_bytes_, kLeastMssBytes), context_.mss_bytes());
  // A SYN's window is never scaled (RFC 7323 section 2.2); an ACK's is.
  const unsigned shift = parsed.tcp.flags.has(wire::kSyn) ? 0U : peer_window_shift_;
  sender_.begin(now, {.first = iss_ + 1,
                      .mss_bytes = mss - option_bytes,
                      .peer_window_bytes = std::uint32_t{parsed.tcp.window} << shift,
                      .timestamps = timestamps_,
                      .sack = sack_,
                      .clock = clock_});
  sender_.set_max_super_segment(context_.config.max_super_segment_bytes);
  Receiver::Window window = context_.window;
  if (!peer_scales_) {
    window.scale = 0;
    window.bytes = std::min<std::uint32_t>(window.bytes, 65535);
    window.field = static_cast<std::uint16_t>(window.bytes);
  }
  receiver_.begin(now, {.next = irs_ + 1,
                        .window = window,
                        .timestamps = timestamps_,
                        .timestamp = syn_timestamp_,
                        .sack = sack_});
  wl1_ = SeqNum(parsed.tcp.sequence);
  wl2_ = SeqNum(parsed.tcp.acknowledgment);
  header_.build(context_.config, mac_, local_port_, remote_, timestamps_);
  heard_ = spoke_ = now;
  state_deadline_ = kNever;
  set_state(State::kEstablished);
  if (active_ && sack_) path_.begin(now);
}

bool Connection::write(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
  if (!is_writable() || !sender_.write(copied, referenced)) return false;
  wake();
  return true;
}

void Connection::close() {
  events_ = nullptr;
  switch (state_) {
    case State::kEstablished:
      set_state(State::kFinWait1);
      break;
    case State::kCloseWait:
      set_state(State::kLastAck);
      break;
    case State::kSynSent:
      end();
      return;
    default:
      return;
  }
  sender_.queue_fin();
  wake();
}

void Connection::abort() {
  events_ = nullptr;
  if (state_ == State::kClosed) return;
  if (is_synchronized() && state_ != State::kTimeWait) {  // RFC 9293 section 3.10.5.
    reset_due_ = true;
    reset_seq_ = sender_.snd_max();
  }
  end();
  if (reset_due_) wake();
}

void Connection::drop() { end(); }

void Connection::end() {
  assert(state_ != State::kClosed);
  receiver_.clear();
  sender_.reset();
  set_state(State::kClosed);
  context_.retire(index_, key());
}

void Connection::fail(TimePoint now, Errc code, const char* where) {
  if (state_ == State::kClosed) return;
  StreamEvents* events = std::exchange(events_, nullptr);
  ++context_.counters.connections_failed;
  end();
  if (events != nullptr) events->on_failed(now, Error{code, 0, where});
}

void Connection::on_neighbour(MacAddress mac) {
  mac_ = mac;
  mac_known_ = true;
  // Before that there is no template but the SYN's own.
  if (is_synchronized()) header_.set_destination(mac);
  if (state_ != State::kClosed) wake();
}

void Connection::on_fragmentation_needed(TimePoint now, SeqNum quoted, std::uint32_t mtu_bytes) {
  if (!is_synchronized() || state_ == State::kTimeWait) return;
  const bool probe = path_.is_active() && quoted == iss_ + 1 - sender_.mss_bytes();
  if (!probe && !sender_.is_in_flight(quoted)) return;
  const auto headers = static_cast<std::uint32_t>(wire::kIpv4Bytes + header_.tcp_header_bytes());
  // RFC 1191 section 3 knows no next hop below 68; anything so small is an attack (RFC 5927
  // section 7.3) or useless here.
  if (mtu_bytes < headers + kLeastMssBytes || mtu_bytes - headers >= sender_.mss_bytes()) return;
  sender_.lower_mss(now, mtu_bytes - headers);
  if (path_.is_active()) path_.begin(now);
  wake();
  schedule();
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
  // RFC 6191: a newer timestamp proves a newer connection; else a higher number does.
  if (receiver_.timestamps() && syn.options.timestamps)
    return timestamp_before(receiver_.ts_recent(), syn.options.timestamps->value) ||
           (receiver_.ts_recent() == syn.options.timestamps->value &&
            SeqNum(syn.sequence).after(receiver_.rcv_nxt()));
  return SeqNum(syn.sequence).after(receiver_.rcv_nxt());
}

}  // namespace ztcp::tcp
