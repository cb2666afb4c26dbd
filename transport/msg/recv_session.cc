// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <cassert>
#include <utility>

#include "transport/msg/acceptor.h"

namespace ztcp::msg {

RecvSession::RecvSession(Acceptor& acceptor, const SessionSettings& settings, const Hello& hello,
                         std::uint32_t allowance_bytes, Endpoint remote)
    : acceptor_(&acceptor),
      copies_(acceptor.copies()),
      settings_(settings),
      cookie_(hello.cookie),
      id_(hello.session),
      remote_(remote),
      sender_listening_(hello.listening),
      sender_shares_nic_(hello.shares_nic),
      peer_host_(hello.host),
      flows_granted_(static_cast<std::uint8_t>(
          std::clamp<std::uint32_t>(settings.flows, 1, hello.flows_wanted))),
      bounce_(allowance_bytes) {}

RecvSession::~RecvSession() {
  stop_writing();
  for (auto& flow : flows_) {
    if (flow == nullptr) continue;
    // The refusal must still reach the peer.
    if (flow->state() == RecvFlow::State::kDraining)
      flow->close();
    else
      flow->abort();
    flow->leave_session();
    if (acceptor_ != nullptr) acceptor_->reap_later(std::move(flow));
  }
  if (acceptor_ != nullptr) acceptor_->remove_session(*this);
}

void RecvSession::orphan() {
  abort();
  acceptor_ = nullptr;
}

void RecvSession::set_owner(RecvOwner& owner) {
  assert(owner_ == nullptr);
  owner_ = &owner;
  if (has_untold_failure_ && acceptor_ != nullptr) acceptor_->wake_at(TimePoint::min());
}

void RecvSession::attach(TimePoint now, std::unique_ptr<RecvFlow> attached) {
  const std::size_t index = attached->index();
  assert(index < flows_granted_ && attached->hello().epoch > epochs_[index]);
  epochs_[index] = attached->hello().epoch;
  if (flows_[index] != nullptr) {  // Fences the older stream.
    drop_flow(*flows_[index]);
    flows_[index]->leave_session();
    acceptor_->reap_later(std::move(flows_[index]));
  }
  stop_waiting();
  is_sender_lost_ = false;
  flows_[index] = std::move(attached);
  RecvFlow& flow = *flows_[index];
  flow.join(*this);
  if (dscp_) flow.set_dscp(*dscp_);
  Accept accept;
  accept.ack_is_delivery = settings_.ack_is_delivery;
  accept.allowance_bytes = bounce_.allowance_bytes();
  accept.flows_granted = flows_granted_;
  accept.message_window = static_cast<std::uint16_t>(kMessageWindow);
  accept.session = id_;
  accept.host = settings_.host;
  if (!flow.send(accept))
    return on_flow_lost(now, flow, Error{Errc::kOutOfMemory, 0, "Stream::write of accept"});
  tell_state(flow);
}

// Continues where the stream's space ran out.
void RecvSession::tell_state(RecvFlow& flow) {
  for (; flow.lanes_told < lanes_.size(); ++flow.lanes_told, flow.next_map = 0) {
    RecvLane& lane = lanes_[flow.lanes_told];
    if (!tell_maps(flow, lane) || !flow.send(credit_of(lane))) return;
    lane.told_posted = lane.posted;
    changed_.remove(lane);
  }
  if (!flow.send(Ready{released_})) return;
  told_released_ = released_;
  flow.set_up();
  must_watch_ = true;
  if (heard_last_ == nullptr) heard_last_ = &flow;
  if (state_ == State::kClosing) finish_closing();
  if (!changed_.empty()) tell_soon();
}

// Messages finished meanwhile are below the credit's received count, or beyond it and told as
// whole.
bool RecvSession::tell_maps(RecvFlow& flow, RecvLane& lane) {
  flow.next_map = std::max(flow.next_map, lane.received);
  for (; lane.is_in_window(flow.next_map); ++flow.next_map) {
    Map map;
    map.message = flow.next_map;
    map.tag = lane.tag;
    map.is_whole = lane.is_finished(flow.next_map);
    if (!map.is_whole) {
      const Arrival* m = lane.arrival(flow.next_map);
      if (m == nullptr || !m->has_begun) continue;
      map.total = m->total;
      map.units = m->held;
    }
    if (!flow.send(map)) return false;
  }
  return true;
}

// Whether the changes are worth a record now (record.h, "When credit is told").
bool RecvSession::are_news_urgent() const {
  return must_tell_ || is_asked_ || untold_received_ >= kMessageWindow / 2 ||
         released_ - told_released_ >= bounce_.allowance_bytes() / 2;
}

// Called after each change of the credit.
void RecvSession::note_news() {
  if (are_news_urgent()) owe_credit();
}

void RecvSession::tell_soon() {
  must_tell_ = true;
  owe_credit();
}

void RecvSession::on_ask() {
  is_asked_ = true;
  if (!changed_.empty()) owe_credit();
}

void RecvSession::owe_credit() {
  if (owes_credit_ || acceptor_ == nullptr) return;
  owes_credit_ = true;
  acceptor_->owe_credit(*this);
}

void RecvSession::flush_owed() {
  owes_credit_ = false;
  flush();
}

// If no flow takes it, on_writable() or attach() sends it later.
void RecvSession::flush() {
  if (state_ != State::kRunning) return;
  while (!changed_.empty()) {
    RecvLane& lane = changed_.first();
    if (!tell(credit_of(lane))) {
      must_tell_ = true;
      return;
    }
    lane.told_posted = lane.posted;
    changed_.remove(lane);
  }
  must_tell_ = false;
  untold_received_ = 0;
}

bool RecvSession::tell(const Credit& credit) {
  RecordBuffer out;
  const auto record = std::span<const std::byte>(out).first(encode(credit, out));
  const auto takes = [&](RecvFlow* flow) {
    return flow != nullptr && flow->is_up() && flow->write(record);
  };
  RecvFlow* const first = settings_.keeps_first_flow_free ? flows_[0].get() : heard_last_;
  const bool is_first_stuck = first != nullptr && first->is_stuck;
  if ((is_first_stuck || !takes(first)) &&
      std::none_of(flows_.begin(), flows_.end(),
                   [&](const auto& flow) {
                     return flow != nullptr && !flow->is_stuck && takes(flow.get());
                   }) &&
      std::none_of(flows_.begin(), flows_.end(),
                   [&](const auto& flow) { return takes(flow.get()); }))
    return false;
  told_released_ = released_;
  is_asked_ = false;
  must_watch_ = true;
  return true;
}

void RecvSession::watch_from(TimePoint now) {
  watch_at_ = next_watch(now);
  watched_received_ = received_;
  if (acceptor_ != nullptr) acceptor_->wake_at(watch_at_);
}

// If nothing is received, the sender may be waiting for credit that was lost on a dead path: credit
// told on such a flow is told again on another. The sender detects the dead flow itself. With
// kernel sockets stall() is a system call, so it is not called once everything is acknowledged.
void RecvSession::watch(TimePoint now) {
  if (state_ != State::kRunning || outstanding_ == 0) {
    watch_at_ = kNever;
    return;
  }
  const bool has_moved = received_ != watched_received_;
  watch_from(now);
  if (!must_watch_) return;
  const auto living = std::count_if(flows_.begin(), flows_.end(), [](const auto& flow) {
    return flow != nullptr && flow->is_up();
  });
  if (living < 2) return;
  bool has_new = false;
  must_watch_ = has_moved;
  for (const auto& flow : flows_) {
    // While messages move, only stuck flows are checked, whether they work again.
    if (flow == nullptr || !flow->is_up() || (has_moved && !flow->is_stuck)) continue;
    const StreamStall stall = flow->stall(now);
    must_watch_ |= !stall.is_acked;
    const bool was_stuck = std::exchange(flow->is_stuck, stall.timeouts >= kDeadTimeouts);
    has_new |= flow->is_stuck && !was_stuck;
  }
  if (!has_new) return;
  lanes_.for_each([&](RecvLane& lane) { change(lane); });
  tell_soon();
}

void RecvSession::on_writable(RecvFlow& flow) {
  if (flow.state() == RecvFlow::State::kMapping) return tell_state(flow);
  if (state_ == State::kClosing) return finish_closing();
  if (must_tell_) owe_credit();
}

void RecvSession::drop_flow(RecvFlow& flow) {
  drop_chunk(flow);
  flow.abort();
  if (heard_last_ == &flow) heard_last_ = nullptr;
}

bool RecvSession::has_living_flow() const {
  return std::any_of(flows_.begin(), flows_.end(),
                     [](const auto& flow) { return flow != nullptr && flow->is_alive(); });
}

void RecvSession::on_flow_lost(TimePoint now, RecvFlow& flow, Error error) {
  drop_flow(flow);
  if (state_ == State::kClosing) return finish_closing();
  if (state_ != State::kRunning) return;
  if (has_living_flow()) {
    // The newest credit may have been lost with it.
    lanes_.for_each([&](RecvLane& lane) { change(lane); });
    return tell_soon();
  }
  if (has_bye_) return check_after_bye(now);
  if (!is_sender_lost_) wait_for_resume(now, error);
}

// With address translation on the path, the address in the hello does not lead to the sender.
void RecvSession::wait_for_resume(TimePoint now, Error error) {
  resume_deadline_ = now + settings_.resume_wait();
  resume_error_ = error;
  acceptor_->wake_at(resume_deadline_);
  if (acceptor_->source() != nullptr && sender_listening_.port != 0 &&
      sender_listening_.address == remote_.address)
    probe_.start(now, *acceptor_->source(), sender_listening_,
                 {.peer_shares_nic = sender_shares_nic_}, settings_.redial_attempt);
}

void RecvSession::stop_waiting() {
  resume_deadline_ = kNever;
  probe_.stop();
}

void RecvSession::wake_at(TimePoint when) { acceptor_->wake_at(when); }

void RecvSession::on_sender_gone(TimePoint now) {
  give_up_sender(now, Error{Errc::kRefused, 0, "nobody listens where the sender's process did"});
}

// The sender may have reported messages as done that still wait for their buffers here.
void RecvSession::give_up_sender(TimePoint now, Error error) {
  const bool has_some = state_ == State::kRunning && unexpected_.count_whole() != 0;
  if (!has_some || outstanding_ != count_copying()) return fail(now, error, why_sender_left());
  stop_waiting();
  is_sender_lost_ = true;
  resume_error_ = error;
}

void RecvSession::on_flow_closed(TimePoint now, RecvFlow& flow) {
  if (!has_bye_ && state_ == State::kRunning)
    return on_flow_lost(now, flow, Error{Errc::kPeerClosed, 0, "FIN without bye"});
  drop_chunk(flow);
  flow.close();
  if (heard_last_ == &flow) heard_last_ = nullptr;
  if (state_ == State::kClosing) return finish_closing();
  if (state_ == State::kRunning) check_after_bye(now);
}

// The sender is done with all its messages: we hold each, in its buffer or without one.
void RecvSession::on_bye(TimePoint now, RecvFlow&, const Bye& bye) {
  if (state_ == State::kRunning &&
      bye.messages != received_ + count_copying() + unexpected_.count_whole())
    return on_protocol_error(now, "bye");
  has_bye_ = true;
  bye_messages_ = bye.messages;
  if (bye.process_ends) sender_left_ = Reason::kProcessEnded;
  check_after_bye(now);
}

// A buffer without a message stays empty.
void RecvSession::check_after_bye(TimePoint now) {
  if (state_ == State::kRunning && outstanding_ != count_copying())
    fail(now, Error{Errc::kPeerClosed, 0, "the sender closed with receives outstanding"},
         why_sender_left());
}

void RecvSession::on_sender_left(TimePoint now, Reason why) {
  sender_left_ = why;
  give_up_sender(now, Error{Errc::kPeerClosed, 0, "the sender left with messages outstanding"});
}

void RecvSession::on_refusal(TimePoint now, const Refusal& refusal) {
  if (refusal.reason == Reason::kAborted) return on_sender_left(now, refusal.reason);
  fail(now, Error{to_errc(refusal.reason), 0, "the peer refused"},
       FailureDetail{refusal.reason, /*from_peer=*/true, refusal.ours, refusal.theirs});
}

void RecvSession::on_protocol_error(TimePoint now, const char* where) {
  fail(now, Error{Errc::kProtocol, 0, where}, FailureDetail{Reason::kProtocol});
}

// A tag has no lane.
void RecvSession::fail_without_lane(TimePoint now) {
  if (!lanes_.is_full())
    return fail(now, Error{Errc::kOutOfMemory, 0, "no memory for another tag"});
  fail(now, Error{Errc::kInvalidArgument, 0, "tag"},
       FailureDetail{Reason::kTooManyTags, /*from_peer=*/false, kMaxLanes, kMaxLanes + 1});
}

void RecvSession::on_timers(TimePoint now) {
  if (has_untold_failure_ && owner_ != nullptr) {
    has_untold_failure_ = false;
    owner_->on_session_failed(untold_failure_);
  }
  if (resume_deadline_ <= now) give_up_sender(now, resume_error_);
  probe_.on_timers(now);
  if (watch_at_ <= now) watch(now);
  for (const auto& flow : flows_)
    if (flow != nullptr && flow->deadline() <= now) flow->close();
}

TimePoint RecvSession::next_deadline() const {
  if (has_untold_failure_ && owner_ != nullptr) return TimePoint::min();
  TimePoint deadline = std::min({resume_deadline_, probe_.next_deadline(), watch_at_});
  for (const auto& flow : flows_)
    if (flow != nullptr) deadline = std::min(deadline, flow->deadline());
  return deadline;
}

Awaited RecvSession::awaited() {
  // NCCL's connections have a few lanes; more are those of a bootstrap.
  constexpr std::size_t kMostLanes = 64;
  if (outstanding_ == 0)
    return unexpected_.count_whole() != 0 ? Awaited::kApplication : Awaited::kNothing;
  for (std::size_t i = 0; i < std::min(lanes_.size(), kMostLanes); ++i) {
    RecvLane& lane = lanes_[i];
    for (std::uint64_t n = lane.received; n < lane.posted && lane.is_in_window(n); ++n)
      if (!lane.is_finished(n) && lane.arrival(n)->has_begun) return Awaited::kNetwork;
  }
  return Awaited::kPeerData;
}

void RecvSession::for_each_stream(
    const std::function<void(std::size_t, const Stream&)>& visit) const {
  for (std::size_t i = 0; i < flows_.size(); ++i)
    if (flows_[i] != nullptr && flows_[i]->is_alive()) visit(i, *flows_[i]->stream());
}

}  // namespace ztcp::msg
