// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a sending session ends: closed, aborted, failed, or with its process.
#include <algorithm>

#include "transport/msg/send_session.h"

namespace ztcp::msg {

void SendSession::close() {
  if (is_ended() || is_closing_) return;
  is_closing_ = true;
  finish_closing();
}

// Once every message is done: bye and FIN on each living flow. One suffices for the peer, so flows
// that are being opened are dropped, unless there is no other.
void SendSession::finish_closing() {
  if (is_ended()) return;
  if (has_outstanding()) {
    if (!ack_is_delivery_) ask();
    return;
  }
  bool has_left = false;
  for (SendFlow& flow : flows_) {
    if (!flow.is_up()) continue;
    RecordBuffer out;
    if (flow.write(std::span(out).first(encode(Bye{posted_, is_leaving_}, out)))) {
      said_bye_ = true;
      flow.close();
    } else {
      has_left = true;  // on_acked() retries.
    }
  }
  for (SendFlow& flow : flows_) {
    if (!flow.is_opening()) continue;
    if (said_bye_ || peer_closed_)
      flow.drop(SendFlow::State::kGone);
    else
      has_left = true;
  }
  if (!has_left) end_closed();
}

bool SendSession::has_lent() {
  bool any = false;
  for_each_outstanding([&](const SendMessage& m) { any |= !kept_.owns(m) || !kept_.is_copied(m); });
  return any;
}

// Lent messages in flight are given up, and with them the streams that refer to their memory. A
// reset does not tell the receiver that no other stream will follow, and may get lost; a hello
// does. If all messages are copied, the receiver gets them first.
void SendSession::leave(TimePoint now) {
  if (is_ended()) return;
  is_closing_ = is_leaving_ = true;
  if (was_accepted_ && !has_lent()) return finish_closing();
  forget_messages();
  const bool may_be_known = was_accepted_ || flows_[0].state() >= SendFlow::State::kGreeting;
  if (!may_be_known) return end_closed();
  say_by_hello(now);
}

bool SendSession::give_up(TimePoint now) {
  if (is_ended()) return false;
  const bool may_be_known = was_accepted_ || flows_[0].state() >= SendFlow::State::kGreeting;
  const bool is_told = say_why(Refusal{Reason::kAborted});
  if (is_told || peer_closed_ || !may_be_known) {
    abort();
    return false;
  }
  is_closing_ = is_leaving_ = is_aborting_ = true;
  forget_messages();
  say_by_hello(now);
  return true;
}

// Announces the end in the hello of a new stream, which is dialled for a redial window at most.
void SendSession::say_by_hello(TimePoint now) {
  for (SendFlow& flow : flows_)
    if (flow.state() != SendFlow::State::kEnded) flow.drop(SendFlow::State::kGone);
  SendFlow& first = flows_[0];
  first.redials = 1;
  first.early_deaths = 0;
  first.is_given_up = false;
  first.lost_since = now;
  first.redial_until = now + settings_.redial_window;
  first.wait_until(now);
}

// A partly sent chunk can't be cut short, and memory that is its owner's again can't be sent.
bool SendSession::refers_to_messages(const SendFlow& flow) {
  bool any = false;
  for_each_outstanding([&](const SendMessage& m) {
    const std::uint64_t end = m.stream_end(flow.index());
    any |= end != SendMessage::kInDoubt && end > flow.acked_bytes();
  });
  return any;
}

// True: at least one flow ends with it.
bool SendSession::say_why(const Refusal& refusal) {
  bool any = false;
  RecordBuffer out;
  const auto record = std::span<const std::byte>(out).first(encode(refusal, out));
  for (SendFlow& flow : flows_) {
    if (!flow.is_up() || refers_to_messages(flow) || !flow.write(record)) continue;
    any = true;
    flow.close();
  }
  return any;
}

// If all copies were sent on one flow, they still arrive: the bye follows them there. Otherwise
// aborts.
void SendSession::cut_off() {
  if (is_finishing() && unsent_.empty() && messages_with_lost_units_ == 0 && !has_lent()) {
    const auto carries = [&](const SendFlow& flow) {
      return std::any_of(sent_.begin(), sent_.end(),
                         [&](SendMessage& m) { return m.stream_end(flow.index()) != 0; });
    };
    if (std::count_if(flows_.begin(), flows_.end(), carries) == 1) {
      for (SendFlow& flow : flows_)
        if (!carries(flow) && flow.state() != SendFlow::State::kEnded)
          flow.drop(SendFlow::State::kGone);
      forget_messages();
      finish_closing();
    }
  }
  if (!is_ended()) abort();
}

// The receiver's process has ended, so undelivered messages are no loss. It may have received all
// of them, and ended before its kernel acknowledged them; the owner is told of the end with its
// next message.
void SendSession::release_kept() {
  for (auto next = sent_.begin(); next != sent_.end();) {
    SendMessage& m = *next++;
    if (!kept_.owns(m) || !kept_.is_copied(m) || kept_.lent(m) == nullptr) continue;
    owner_.on_done(kept_.release(m));
    if (is_ended()) return;
  }
}

void SendSession::end_closed() {
  abort();
  owner_.on_session_closed();
}

void SendSession::forget_messages() {
  unsent_.clear();
  sent_.clear();
  kept_.clear();
  messages_with_lost_units_ = 0;
}

void SendSession::abort() {
  state_ = State::kEnded;
  scout_.stop();
  forget_messages();
  for (SendFlow& flow : flows_)
    if (flow.state() != SendFlow::State::kEnded) flow.drop(SendFlow::State::kGone);
}

void SendSession::fail(Error error, const FailureDetail& detail) {
  if (is_ended()) return;
  if (is_closing_ && !has_outstanding()) return end_closed();  // Nothing was lost.
  if (detail.reason != Reason::kNone && !detail.from_peer)
    say_why(Refusal{detail.reason, detail.ours, detail.theirs});
  abort();
  failure_ = detail;
  owner_.on_session_failed(error);
}

}  // namespace ztcp::msg
