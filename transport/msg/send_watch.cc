// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Flows that make no progress. While messages are outstanding a session checks its flows now and
// then: which of them are dead although TCP still waits, the cause, and whether to tell an
// operator. Costs nothing per message.
#include <algorithm>
#include <array>
#include <chrono>

#include "transport/msg/send_session.h"

namespace ztcp::msg {
namespace {

// Asking a kernel is a system call, and its first timeout takes 200 ms.
constexpr Duration kAskAfter = std::chrono::milliseconds(500);
// For a flow without others to compare with, if a PathScout finds nothing. Where a process of the
// peer acknowledges, it may have been kept from its CPU; a kernel answers at once.
constexpr Duration kDeadAlone = std::chrono::seconds(4);
constexpr Duration kDeadAloneByKernel = std::chrono::seconds(2);
// Where all paths are alike, a flow's next one is soon as bad as its last: each pause between two
// moves is twice as long.
constexpr Duration kLeastMovePause = std::chrono::seconds(1);
constexpr Duration kMostMovePause = 256 * kLeastMovePause;
// After a flow has left a dead path, which might be found again (MarkedRounds::kPause).
constexpr Duration kPauseAfterDeath = std::chrono::minutes(1);
// Shorter trouble is not logged.
constexpr Duration kWorthTelling = std::chrono::seconds(2);
// Handshake timeouts that a process standing still may take to answer its first hello.
constexpr int kFirstGreetings = 12;
// The same for later hellos, of a connection that was up: an hour by default. Waits are counted,
// not time, since this process may have been stopped for as long.
constexpr int kLaterGreetings = 360;

}  // namespace

void SendSession::watch_from(TimePoint now) {
  watch_at_ = next_watch(now);
  watched_received_ = credit_.received();
  moved_at_ = now;
  for (SendFlow& flow : flows_)
    if (flow.is_up()) flow.begin_watch(now);
  dialer_.wake_at(watch_at_);
}

void SendSession::watch(TimePoint now) {
  if (!has_outstanding() && !trouble_) {
    watch_at_ = kNever;
    for (SendFlow& flow : flows_)
      if (flow.is_up()) flow.tolerate_shut_window(Duration::zero());
    return;
  }
  watch_at_ = next_watch(now);
  if (credit_.received() != watched_received_) moved_at_ = now;
  watched_received_ = credit_.received();

  // No caller waits for the receipts of copies, and without them the watch would go on.
  if (!ack_is_delivery_ && unsent_.empty() && !sent_.empty() && kept_.owns(*sent_.begin()) &&
      now - moved_at_ >= kAskAfter)
    ask();

  Duration silent{};  // The longest.
  Duration shut{};
  bool all_acked = true;
  for (SendFlow& flow : flows_)
    if (flow.is_up()) flow.watch(now, settings_.ack_is_delivery);
  for (SendFlow& flow : flows_) {
    if (flow.is_up()) {
      moved_at_ = std::max(moved_at_, flow.moved_at());
      if (!watch_flow(now, flow, silent, shut, all_acked)) return;  // The session has ended.
    } else if (flow.is_opening()) {
      all_acked = false;
      const bool is_greeting = flow.state() == SendFlow::State::kGreeting;
      if (is_greeting && trouble_ == PeerTrouble::kStandsStill)
        shut = std::max(shut, now - trouble_since_);
      else if (!is_greeting && flow.redials != 0)
        silent = std::max(silent, now - flow.lost_since);
    }
  }
  if (settings_.leaves_bad_paths && settings_.ack_is_delivery && wants_extra_flows_)
    compare_paths(now);
  const bool nobody_reads = all_acked && awaits_receipt();
  note_trouble(now, silent, std::max(shut, nobody_reads ? now - moved_at_ : Duration::zero()));
}

// False: the session ended because of it.
bool SendSession::watch_flow(TimePoint now, SendFlow& flow, Duration& silent, Duration& shut,
                             bool& all_acked) {
  const Duration stalled = now - flow.stalled_since();
  if (!has_outstanding()) return true;
  if (!is_stalled(now, flow)) {
    flow.doubted_at = kNever;
    flow.tolerate_shut_window(Duration::zero());
    all_acked = false;
    return true;
  }
  const StreamStall stall = flow.stall(now);
  all_acked &= stall.is_acked;
  if (stall.is_shut) {
    shut = std::max(shut, stalled);
    flow.tolerate_shut_window(stalled);
  }
  if (is_dead(now, flow, stall)) {
    flow.is_given_up = true;
    silent = std::max(silent, stalled);
    on_flow_lost(now, flow, Error{Errc::kTimedOut, 0, "no acknowledgement"});
    return !is_ended();
  }
  if (stall.timeouts != 0) silent = std::max(silent, stalled);
  return true;
}

// Userspace TCP is asked in each check, and knows a dead path after a few timeouts, which together
// may be much shorter than the interval between checks.
bool SendSession::is_stalled(TimePoint now, SendFlow& flow) {
  const Duration stalled = now - flow.stalled_since();
  if (!settings_.ack_is_delivery) return stalled >= kAskAfter;
  return stalled >= kWatchInterval || flow.stall(now).timeouts >= kDoubtfulTimeouts;
}

// If other flows to the peer are acknowledged, of this session or another, the peer lives and its
// network works: then this flow's path is at fault, and another port may use another path. Received
// bytes prove nothing about the path to the peer, nor about our own NIC. Userspace TCP's PathScout
// has the last word: a peer that was stopped answers some flows sooner than others.
bool SendSession::is_dead(TimePoint now, SendFlow& flow, const StreamStall& stall) {
  if (settings_.redial_window == Duration::zero()) return false;  // Redialling is off.
  if (stall.timeouts < kDoubtfulTimeouts || stall.is_shut) {
    flow.doubted_at = kNever;
    return false;
  }
  flow.doubted_at = std::min(flow.doubted_at, now);
  const Duration alone = settings_.ack_is_delivery ? kDeadAlone : kDeadAloneByKernel;
  if (stall.timeouts >= kDeadTimeouts && now - flow.stalled_since() >= alone) return true;
  FlowSet doubtful;
  doubtful.set(flow.index());
  const bool is_peer_answering = is_peer_answering_since(now, flow.doubted_at, doubtful);
  if (!settings_.ack_is_delivery) return is_peer_answering && stall.timeouts >= kDeadTimeouts;
  doubtful = doubtful_flows(now);
  if (is_peer_answering) {
    if (stall.timeouts >= kDeadTimeouts) scout_.compare_with_siblings(now, doubtful);
    return false;
  }
  // Siblings without timeouts were asked just now. After an early death the last comparison may
  // have been wrong.
  const bool may_be_answered = flow.doubted_at == now && std::ranges::any_of(flows_, [&](auto& f) {
                                 return f.is_up() && !doubtful[f.index()];
                               });
  if (!may_be_answered && flow.early_deaths == 0) scout_.compare_with_new_stream(now, doubtful);
  return false;
}

FlowSet SendSession::doubtful_flows(TimePoint now) {
  FlowSet doubtful;
  for (SendFlow& flow : flows_) {
    if (!flow.is_up()) continue;
    const StreamStall stall = flow.stall(now);
    doubtful[flow.index()] = stall.timeouts >= kDoubtfulTimeouts && !stall.is_shut;
  }
  return doubtful;
}

bool SendSession::is_peer_answering_since(TimePoint now, TimePoint since, FlowSet except) {
  return is_answering_since(now, since, except) || dialer_.is_peer_answering_since(now, since);
}

// Something is sent on each flow, so that its acknowledgement is newer than `since`.
bool SendSession::is_answering_since(TimePoint now, TimePoint since, FlowSet except) {
  bool is_answering = false;
  for (SendFlow& flow : flows_) {
    if (except[flow.index()] || !flow.is_up()) continue;
    if (flow.up_at > since) {
      is_answering = true;
    } else if (flow.asked_at < since) {
      std::array<std::byte, kHeaderBytes + Ask::kBody> record;
      encode(Ask{}, record);
      if (flow.room() != 0) flow.write(record);
      flow.asked_at = now;
      flow.acked_when_asked = flow.acked_bytes();
    } else {
      is_answering |= settings_.ack_is_delivery ? flow.acked_bytes() > flow.acked_when_asked
                                                : flow.stall(now).is_acked;
    }
  }
  return is_answering;
}

// One flow at a time, and only while as many flows have good paths as bad ones: otherwise the cause
// is probably at an end of all paths, and moving is no help.
void SendSession::compare_paths(TimePoint now) {
  std::size_t bad = 0;
  std::size_t good = 0;
  for (SendFlow& flow : flows_) {
    if (!flow.is_up()) continue;
    const PathQuality::Verdict verdict = flow.quality.check(flow.path_health());
    bad += verdict == PathQuality::Verdict::kBad ? 1 : 0;
    good += verdict == PathQuality::Verdict::kGood ? 1 : 0;
  }
  SendFlow* worst = nullptr;
  for (SendFlow& flow : flows_) {
    if (!flow.is_up()) continue;
    flow.quality.compare(good >= bad);
    if (worst == nullptr || flow.quality.bad_checks() > worst->quality.bad_checks()) worst = &flow;
  }
  if (worst == nullptr || !worst->quality.is_worth_leaving() || now < next_move_ ||
      !has_served(now, *worst) || !scout_.is_idle())
    return;
  const bool was_calm = now >= next_move_ + move_pause_;
  move_pause_ = was_calm ? kLeastMovePause : std::min(2 * move_pause_, kMostMovePause);
  next_move_ = now + move_pause_;
  scout_.find_other_path(now, worst->index());
}

void SendSession::pause_moves(TimePoint now) {
  next_move_ = std::max(next_move_, now + kPauseAfterDeath);
}

// The receiver has posted the buffer of a message that was sent completely: a running process takes
// it from its kernel at once, and confirms it.
bool SendSession::awaits_receipt() {
  if (ack_is_delivery_ || sent_.empty()) return false;
  const SendMessage& oldest = *sent_.begin();
  // The receiver confirms copies only when asked (record.h).
  if (kept_.owns(oldest) && !has_asked_) return false;
  return !oldest.has_lost() && oldest.lane().is_posted(oldest.number());
}

Awaited SendSession::awaited() {
  if (state_ == State::kOpening) return Awaited::kConnection;
  if (is_ended() || !has_outstanding()) return Awaited::kNothing;
  const SendMessage& oldest = sent_.empty() ? *unsent_.begin() : *sent_.begin();
  // Acknowledged bytes of a message without a buffer wait at the receiver.
  const bool has_buffer = oldest.lane().is_posted(oldest.number());
  return has_buffer ? Awaited::kNetwork : Awaited::kPeerReceive;
}

// The peer's kernel has this flow's hello, and acknowledges it although the process stands still
// (stopped by a debugger, a batch system, a container's pause). That process exists: otherwise its
// kernel would reset the flow.
bool SendSession::bear_with_greeting(TimePoint now, SendFlow& flow) {
  if (settings_.ack_is_delivery || is_leaving_ || flow.state() != SendFlow::State::kGreeting)
    return false;
  if (!flow.stall(now).is_acked) return false;
  if (!was_accepted_) {
    if (trouble_since_ == TimePoint{}) trouble_since_ = now - settings_.handshake_timeout;
    if (now - trouble_since_ >= kFirstGreetings * settings_.handshake_timeout) return false;
  } else {
    if (flow.greeting_waits * settings_.redial_attempt >=
        kLaterGreetings * settings_.handshake_timeout)
      return false;
    ++flow.greeting_waits;
    flow.redial_until = now + settings_.redial_window;
  }
  const TimePoint since = !was_accepted_      ? trouble_since_
                          : flow.redials != 0 ? flow.lost_since
                                              : now - settings_.handshake_timeout;
  note_trouble(now, Duration::zero(), now - since);
  flow.wait_longer(now + settings_.redial_attempt);
  return true;
}

void SendSession::note_trouble(TimePoint now, Duration silent, Duration standing) {
  if (std::max(silent, standing) < kWorthTelling) {
    if (trouble_ && silent == Duration::zero() && standing == Duration::zero()) end_trouble(now);
    return;
  }
  if (silent >= standing)
    say_trouble(now, PeerTrouble::kSilent, silent);
  else
    say_trouble(now, PeerTrouble::kStandsStill, standing);
}

void SendSession::say_trouble(TimePoint now, PeerTrouble trouble, Duration lasted) {
  if (trouble_ == trouble) return;
  trouble_ = trouble;
  trouble_since_ = now - lasted;
  if (PathEvents* const events = dialer_.path_events())
    events->on_trouble(now, dialer_.remote(), trouble, lasted);
}

void SendSession::end_trouble(TimePoint now) {
  const PeerTrouble trouble = *trouble_;
  trouble_.reset();
  if (PathEvents* const events = dialer_.path_events())
    events->on_trouble_over(now, dialer_.remote(), trouble, now - trouble_since_);
}

}  // namespace ztcp::msg
