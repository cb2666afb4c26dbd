// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/peer_status.h"

#include <cerrno>
#include <chrono>

namespace ztcp::verbs {
namespace {

constexpr Duration kGrace = std::chrono::milliseconds(50);
// Over iWARP, bytes may still be in flight when the peer's work is complete. The peer keeps its
// queue pairs for a while after it has closed; when they go, ours fail behind the last byte.
constexpr Duration kArrival = std::chrono::seconds(10);

// The end of a path proves that the peer has ended if the peer said so, or its kernel did: the path
// was closed, or nobody listens at its port. Silence proves nothing, nor does the end of a path
// that is not joined yet: a listener with many pending connections drops the oldest ones.
bool is_death(const PathEnd& ended) {
  const Error& error = ended.error;
  if (error.code == Errc::kRefused || error.code == Errc::kProtocol) return true;
  if (error.code != Errc::kPeerClosed || !ended.is_joined || ended.is_cut) return false;
  if (error.sys_errno == 0) return true;
  // A kernel that has given up a silent connection, after the user timeout, also answers with a
  // reset when it hears of that connection again.
  return ended.silence < ended.user_timeout * 3 / 4;
}

// A reset has several causes. The peer's process ended with bytes unread; or the peer lives, and
// its kernel had no answer for the user timeout, because packets are lost in one direction or its
// host is overloaded; or an administrator destroyed the connection (ss -K). A redial tells them
// apart: nobody listens for a dead peer, and a living sender dials again.
bool is_reset(const Error& error) {
  return error.code == Errc::kPeerClosed &&
         (error.sys_errno == ECONNRESET || error.sys_errno == ECONNABORTED);
}

}  // namespace

PathVerdict judge(const PathEnd& ended) {
  if (!ended.is_last) return PathVerdict::kOthersServe;
  if (!is_death(ended)) return PathVerdict::kSilent;
  return ended.is_joined && ended.may_redial && is_reset(ended.error) ? PathVerdict::kAwaitRedial
                                                                      : PathVerdict::kDied;
}

void PeerStatus::report(PeerEvent event, Errc code, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (has_ended()) return;
  code_ = code;
  text_ = text;
  event_.store(event, std::memory_order_release);
}

void PeerStatus::set_silent(bool is_silent) {
  const std::lock_guard lock(mutex_);
  if (!has_ended())
    event_.store(is_silent ? PeerEvent::kSilent : PeerEvent::kNone, std::memory_order_release);
}

std::string PeerStatus::text() const {
  return event() == PeerEvent::kClosed ? "it has closed the connection" : text_;
}

PeerStatus::Advice PeerStatus::advise(bool waits_for_peer, bool may_arrive_late, TimePoint now) {
  switch (const PeerEvent seen = event()) {
    case PeerEvent::kNone:
      return Advice::kContinue;
    case PeerEvent::kSilent:
      return Advice::kProbe;
    case PeerEvent::kDeviceLost:
      return Advice::kFail;
    default:
      if (seen == PeerEvent::kClosed && !waits_for_peer) return Advice::kContinue;
      if (seen_at_ == kNever) seen_at_ = now;
      const bool waits_longer = seen == PeerEvent::kClosed && may_arrive_late;
      return now - seen_at_ < (waits_longer ? kArrival : kGrace) ? Advice::kContinue
                                                                 : Advice::kFail;
  }
}

}  // namespace ztcp::verbs
