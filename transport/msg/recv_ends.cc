// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a receiving session ends: closed, aborted, failed, or with its process.
#include <cassert>

#include "transport/msg/acceptor.h"

namespace ztcp::msg {

void RecvSession::fail(TimePoint now, Error error, const FailureDetail& detail) {
  // Bytes already received are finished first, as without workers.
  if (has_copies_out()) copies_->settle(now, *this);
  settle_places();
  if (state_ == State::kFailed || state_ == State::kEnded) return;
  if (state_ == State::kClosing) {  // No request is pending.
    abort();
    assert(owner_ != nullptr);  // Only an owner closes a session.
    return owner_->on_session_closed();
  }
  state_ = State::kFailed;
  failure_ = detail;
  stop_waiting();
  for (const auto& flow : flows_) {
    if (flow == nullptr || !flow->is_alive()) continue;
    const bool peer_should_know = detail.reason != Reason::kNone && !detail.from_peer;
    if (peer_should_know && flow->send(Refusal{detail.reason, detail.ours, detail.theirs}))
      flow->drain(now + RecvFlow::kLinger);
    else
      flow->abort();
  }
  if (acceptor_ != nullptr) acceptor_->wake_at(now + RecvFlow::kLinger);
  if (owner_ != nullptr) return owner_->on_session_failed(error);
  has_untold_failure_ = true;
  untold_failure_ = error;
}

void RecvSession::settle_places() {
  if (places_lent_ == 0) return;
  for (const auto& flow : flows_)
    if (flow != nullptr) flow->settle_place();
}

void RecvSession::stop_writing() {
  if (has_copies_out()) copies_->forget(*this);
  settle_places();
}

void RecvSession::close() {
  if (state_ == State::kRunning) {
    stop_writing();
    state_ = State::kClosing;
    if (acceptor_ != nullptr) acceptor_->remember_closed(*this, {Reason::kClosed, received_});
    finish_closing();
  }
}

// Sends bye and FIN on each flow. A flow still in its handshake finishes that first.
void RecvSession::finish_closing() {
  if (state_ != State::kClosing) return;
  bool has_left = false;
  for (const auto& flow : flows_) {
    if (flow == nullptr || !flow->is_alive()) continue;
    if (flow->is_up() && flow->send(Bye{received_}))
      flow->close();
    else
      has_left = true;
  }
  if (has_left) return;
  state_ = State::kEnded;
  stop_waiting();
  if (owner_ != nullptr) owner_->on_session_closed();
}

// Not FIN: bytes in flight to a closed stream may be answered with RST (RFC 1122 section 4.2.2.13),
// which would overtake the bye.
void RecvSession::leave(TimePoint now) {
  if (state_ != State::kRunning && state_ != State::kClosing) return;
  stop_writing();
  state_ = State::kEnded;
  stop_waiting();
  for (const auto& flow : flows_) {
    if (flow == nullptr || !flow->is_alive()) continue;
    if (flow->is_up() && flow->send(Bye{received_, /*process_ends=*/true}))
      flow->drain(now + RecvFlow::kLinger);
    else
      flow->abort();
  }
  if (acceptor_ != nullptr) acceptor_->wake_at(now + RecvFlow::kLinger);
}

void RecvSession::abort() {
  stop_writing();
  state_ = State::kEnded;
  stop_waiting();
  for (const auto& flow : flows_)
    if (flow != nullptr) flow->abort();
}

// Not RST: it would overtake the refusal.
void RecvSession::give_up() {
  stop_writing();
  const bool is_news = state_ == State::kRunning;
  if (is_news && acceptor_ != nullptr) acceptor_->remember_closed(*this, {Reason::kAborted});
  for (const auto& flow : flows_)
    if (is_news && flow != nullptr && flow->send(Refusal{Reason::kAborted})) flow->close();
  abort();
}

}  // namespace ztcp::msg
