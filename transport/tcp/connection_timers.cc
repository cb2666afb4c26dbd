// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Deadlines of a connection. Each is computed from the present state; the earliest goes to the
// timer wheel.
#include <algorithm>

#include "transport/tcp/connection.h"

namespace ztcp::tcp {
namespace {

constexpr int kMaxKeepalives = 3;
// RFC 5482 leaves the timeout of half-open connections to us: long enough for a few lost SYN-ACKs.
constexpr Duration kHalfOpenTimeout = std::chrono::seconds(5);

}  // namespace

// Data in flight is watched by the retransmission timer, which is earlier and knows more.
TimePoint Connection::keepalive_deadline() const {
  const bool watched = !sender_.scoreboard().empty();
  if (watched || state_ == State::kTimeWait) return kNever;
  const TcpSettings& settings = context_.config.tcp;
  if (keepalives_ == 0) return heard_ + settings.keepalive_idle;
  return keepalive_sent_ + settings.keepalive_interval;
}

TimePoint Connection::deadline() const {
  if (!is_synchronized() || state_ == State::kTimeWait) return state_deadline_;
  return std::min(
      {state_deadline_, sender_.deadline(), keepalive_deadline(), path_.deadline(), raise_at_});
}

void Connection::schedule() {
  if (state_ != State::kClosed) context_.wheel.schedule(index_, deadline());
}

void Connection::on_timer(TimePoint now) {
  switch (state_) {
    case State::kClosed:
      return;
    case State::kSynSent:
    case State::kSynReceived:
      if (state_deadline_ <= now) on_syn_timer(now);
      schedule();
      return;
    case State::kTimeWait:
      if (state_deadline_ <= now) {
        end();
        return;
      }
      schedule();
      return;
    default:
      break;
  }
  limit_lingering(now);
  if (state_deadline_ <= now) {
    abort();
    return;
  }
  if (std::min(path_.deadline(), raise_at_) <= now && !on_path_timer(now)) return;
  if (keepalive_deadline() <= now && !on_keepalive_timer(now)) return;
  if (sender_.deadline() <= now) {
    const int backoff = sender_.backoff();
    switch (sender_.on_timer(now)) {
      case Sender::Timeout::kNone:
        break;
      case Sender::Timeout::kProbe:
        keepalive_due_ = true;
        if (now - heard_ >= context_.config.tcp.keepalive_interval)
          context_.neighbours.confirm(now, index_);
        break;
      case Sender::Timeout::kGiveUp:
        give_up(now, "tcp user timeout");
        return;
    }
    // Both sides have closed with data left to send, and each refuses the other's: neither FIN will
    // ever be acknowledged (refuse_payload()).
    if (payload_lost_ && events_ == nullptr && sender_.backoff() > backoff) {
      abort();
      return;
    }
    if (sender_.backoff() > backoff) {
      // A peer that stays silent may have moved to another MAC address.
      if (sender_.backoff() >= 2) context_.neighbours.confirm(now, index_);
      suspect_path(now);
      if (sender_.window_bytes() != 0) reroute_after_timeout(now, sender_.backoff());
    }
  }
  wake();
  schedule();
}

// After close(), a peer that keeps its window closed or never closes its side must not keep the
// slot.
void Connection::limit_lingering(TimePoint now) {
  if (events_ != nullptr || state_ == State::kEstablished || state_ == State::kCloseWait) return;
  if (state_ == State::kFinWait2 && state_deadline_ != kNever) return;
  const Duration timeout = context_.config.tcp.user_timeout;
  const TimePoint since = state_deadline_ == kNever ? now : sender_.progress();
  if (state_deadline_ == kNever || since + timeout > state_deadline_)
    state_deadline_ = since + timeout;
}

Duration Connection::handshake_timeout() const {
  return !active_ ? kHalfOpenTimeout : context_.config.tcp.connect_timeout;
}

void Connection::on_syn_timer(TimePoint now) {
  if (now - opened_ >= handshake_timeout()) {
    if (!active_) {
      drop();
    } else if (mac_known_) {
      give_up(now, "tcp connect");
    } else {
      ++context_.counters.arp_unresolved;
      fail(now, Errc::kNoRoute, "arp");
    }
    return;
  }
  if (seeks_port_ && mac_known_ && state_ == State::kSynSent &&
      leave_port(now, /*was_refused=*/false))
    return;
  // RFC 1122 section 2.3.2.1: a silent peer may have moved to another MAC address.
  context_.neighbours.confirm(now, index_);
  reroute(Reroute::Cause::kTimeouts, reroutes_ + 1);
  syn_timeout_ =
      std::min(2 * syn_timeout_, std::max(context_.config.tcp.rto_max, context_.rto_floor));
  state_deadline_ = std::min(now + syn_timeout_, opened_ + handshake_timeout());
  syn_due_ = true;
  wake();
}

// A router's report since the peer was last heard is the better reason.
void Connection::give_up(TimePoint now, const char* where) {
  if (unreachable_ != nullptr && unreachable_at_ >= heard_)
    fail(now, Errc::kNoRoute, unreachable_);
  else
    fail(now, Errc::kTimedOut, where);
}

void Connection::ask_peer() {
  if (!is_synchronized() || state_ == State::kTimeWait) return;
  keepalive_due_ = true;
  wake();
}

bool Connection::on_keepalive_timer(TimePoint now) {
  if (keepalives_ == kMaxKeepalives) {
    give_up(now, "tcp keepalive");
    return false;
  }
  if (keepalives_ > 0) context_.neighbours.confirm(now, index_);
  ++keepalives_;
  keepalive_sent_ = now;
  keepalive_due_ = true;
  return true;
}

}  // namespace ztcp::tcp
