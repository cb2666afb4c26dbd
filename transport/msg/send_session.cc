// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/send_session.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/msg/handshake.h"

namespace ztcp::msg {
namespace {

// The first redial goes out at once: most dead flows are due to one path. Later ones give the
// network time, but are close enough together not to miss the end of an outage.
constexpr Duration redial_delay(std::uint32_t in_vain) {
  return in_vain == 0 ? Duration::zero()
                      : std::chrono::milliseconds(50) * (1U << std::min(in_vain, 3U));
}

}  // namespace

SendSession::SendSession(const SessionSettings& settings, const ClusterKey& key,
                         const Cookie& cookie, std::uint64_t session_id, Dialer& dialer,
                         SendOwner& owner)
    : settings_(settings),
      key_(key),
      cookie_(cookie),
      session_id_(session_id),
      dialer_(dialer),
      owner_(owner),
      kept_(settings.kept_message_bytes) {
  for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i].bind(*this, i);
  flows_[0].wait_until(TimePoint::min());
}

SendSession::~SendSession() { abort(); }

void SendSession::post(TimePoint now, SendMessage& message) {
  if (is_ended() || is_aborting_) return;
  if (peer_closed_) {
    const FailureDetail ended{Reason::kProcessEnded, /*from_peer=*/true, 0, 0};
    return fail(Error{Errc::kPeerClosed, 0, "post: the receiver has closed"},
                peer_process_ended_ ? ended : FailureDetail{});
  }
  if (message.total() > kMaxMessageBytes)
    return fail(Error{Errc::kInvalidArgument, 0, "post: message above 1 TiB"});
  SendLane* const lane = lanes_.find_or_add(message.tag());
  if (lane == nullptr) return fail_without_lane();
  if (lane->messages == 0) ++used_lanes_;
  SendMessage* const kept = state_ == State::kReady ? kept_.keep(message) : nullptr;
  SendMessage& next = kept != nullptr ? *kept : message;
  next.set_place(*lane, lane->messages++);
  ++posted_;
  unsent_.push_back(next);
  if (watch_at_ == kNever) [[unlikely]]
    watch_from(now);
  if (message.total() > settings_.multi_flow_threshold_bytes && !wants_extra_flows_) {
    wants_extra_flows_ = true;
    if (state_ == State::kReady) start_extra_flows(now);
  }
  pump(now);
  // Streams have copied it, so the owner's memory, which may be gone when the process ends, is not
  // needed. It is done once it would arrive even then.
  if (kept != nullptr && message.total() <= kMostCopied && kept->is_handed_out()) kept_.copy(*kept);
}

void SendSession::start_extra_flows(TimePoint now) {
  for (std::size_t i = 1; i < flows_granted_; ++i)
    if (flows_[i].state() == SendFlow::State::kIdle) flows_[i].wait_until(now);
}

Hello SendSession::make_hello(std::uint8_t flow, std::uint32_t epoch) const {
  Hello hello;
  hello.is_new = !was_accepted_;
  hello.has_key = is_set(key_);
  hello.process_ends = is_leaving_ && !is_aborting_ && !has_outstanding();
  hello.aborts = is_aborting_;
  hello.ack_is_delivery = settings_.ack_is_delivery;
  hello.cookie = cookie_;
  hello.session = session_id_;
  hello.epoch = epoch;
  hello.flow = flow;
  hello.flows_wanted = static_cast<std::uint8_t>(
      std::clamp<std::uint32_t>(settings_.flows, 1, static_cast<std::uint32_t>(kMaxFlows)));
  hello.nonce = sender_nonce(session_id_, flow, epoch);
  hello.listening = dialer_.listening();
  hello.shares_nic = dialer_.shares_nic();
  hello.host = settings_.host;
  return hello;
}

void SendSession::on_accept(const Accept& accept) {
  credit_.on_accept(accept);
  ack_is_delivery_ = accept.ack_is_delivery && settings_.ack_is_delivery;
  if (was_accepted_) return;
  was_accepted_ = true;
  peer_host_ = accept.host;
  flows_granted_ = static_cast<std::uint8_t>(
      std::clamp<std::uint32_t>(settings_.flows, 1, accept.flows_granted));
}

void SendSession::on_timers(TimePoint now) {
  for (SendFlow& flow : flows_) {
    if (is_ended()) return;
    if (flow.wake_at() > now) continue;
    if (flow.state() != SendFlow::State::kWaiting) {
      if (bear_with_greeting(now, flow)) continue;
      const bool stands_still = flow.greeting_waits != 0;
      on_flow_lost(now, flow,
                   Error{Errc::kTimedOut, 0,
                         stands_still ? "handshake: its host's kernel answers, its process does not"
                                      : "handshake"});
      continue;
    }
    if (flow.index() != 0 && !flow.was_up() && !dialer_.has_spare()) {
      on_flow_lost(now, flow, Error{Errc::kOutOfMemory, 0, "dial: no stream to spare"});
      continue;
    }
    std::optional<Duration> timeout;
    if (flow.redials != 0) timeout = attempt_timeout(flow);
    // If the path drops only large segments, the first attempt succeeds. Otherwise it was an
    // outage.
    if (flow.redials > 1) segment_limit_ = 0;
    flow.segment_bytes = segment_bytes();
    if (const Status dialled = flow.dial(now, dialer_, timeout); !dialled)
      on_flow_lost(now, flow, dialled.error());
  }
  if (!is_ended()) scout_.on_timers(now);
  if (watch_at_ <= now && !is_ended()) watch(now);
}

// While other flows are up, or open, the peer answers at once, unless the new port uses a dead
// path, too. After a few ports the peer may be slow instead.
Duration SendSession::attempt_timeout(const SendFlow& flow) const {
  constexpr std::uint32_t kShortAttempts = 3;
  constexpr Duration kShort = std::chrono::milliseconds(250);
  const bool has_siblings = std::ranges::any_of(flows_, [&](const SendFlow& f) {
    return f.is_up() || (settings_.ack_is_delivery && f.is_open());
  });
  return has_siblings && flow.redials <= kShortAttempts ? std::min(kShort, settings_.redial_attempt)
                                                        : settings_.redial_attempt;
}

TimePoint SendSession::next_deadline() const {
  TimePoint deadline = is_ended() ? kNever : std::min(watch_at_, scout_.next_deadline());
  for (const SendFlow& flow : flows_) deadline = std::min(deadline, flow.wake_at());
  return deadline;
}

void SendSession::on_credit(TimePoint now, const Credit& credit) {
  SendLane* const lane = lanes_.find_or_add(credit.tag);
  if (lane == nullptr) return fail_without_lane();
  // A receiver names at most as many as it has buffers: it can't make this side's memory grow.
  if (lanes_.size() - used_lanes_ > kMaxUnusedLanes)
    return fail(Error{Errc::kProtocol, 0, "credit for tags that carry no message"},
                FailureDetail{Reason::kProtocol});
  if (!credit_.on_credit(*lane, credit))
    return fail(Error{Errc::kProtocol, 0, "credit"}, FailureDetail{Reason::kProtocol});
  has_asked_ = false;
  advance(now);
}

// A tag has no lane.
void SendSession::fail_without_lane() {
  if (!lanes_.is_full()) return fail(Error{Errc::kOutOfMemory, 0, "no memory for another tag"});
  fail(Error{Errc::kInvalidArgument, 0, "tag"},
       FailureDetail{Reason::kTooManyTags, /*from_peer=*/false, kMaxLanes, kMaxLanes + 1});
}

// Units that the flow carried and that the peer is not known to hold are in doubt until it is up
// again.
void SendSession::doubt_flow(const SendFlow& flow) {
  for_each_outstanding([&](SendMessage& m) {
    const std::uint64_t end = m.stream_end(flow.index());
    if (end == 0 || end == SendMessage::kInDoubt) return;
    if (ack_is_delivery_ && flow.acked_bytes() >= end)
      m.forget(flow.index());
    else
      m.doubt(flow.index());
  });
}

// Whether the flow delivered anything since it was dialled. A path that carries handshakes but no
// larger packets keeps a flow up as long as TCP waits; so only a flow without payload counts by
// age. Bytes that the local kernel took prove nothing; bytes that the peer's TCP acknowledged do.
bool SendSession::has_served(TimePoint now, const SendFlow& flow) const {
  // More than the handshake and a path probe.
  constexpr std::uint64_t kProgressBytes = 64U << 10;
  const std::uint64_t delivered =
      settings_.ack_is_delivery ? flow.acked_bytes() : flow.delivered_bytes();
  if (flow.has_delivered || delivered > kProgressBytes) return true;
  return !is_payload_stuck(flow) && now - flow.up_at >= settings_.redial_window;
}

bool SendSession::is_payload_stuck(const SendFlow& flow) const {
  const std::uint64_t delivered =
      settings_.ack_is_delivery ? flow.acked_bytes() : flow.delivered_bytes();
  // More bytes than small packets carry refute it.
  constexpr std::uint64_t kFitsSmallPackets = 2048;
  return flow.written_bytes() != flow.written_when_up && delivered < flow.written_bytes() &&
         delivered <= flow.written_when_up + kFitsSmallPackets;
}

// Segment limit of flows dialled from now on; zero: as large as TCP finds.
std::uint32_t SendSession::segment_bytes() const {
  // For IP packets of 1400 bytes, which fit through tunnels inside an MTU of 1500; then smaller
  // ones.
  constexpr std::array<std::uint32_t, 3> kLimits{0, 1360, 1024};
  return kLimits[segment_limit_];
}

void SendSession::on_flow_lost(TimePoint now, SendFlow& flow, Error error) {
  if (is_ended()) return;
  const bool was_serving = flow.is_up();
  const bool is_given_up = std::exchange(flow.is_given_up, false);
  const bool was_stalled = was_serving && error.code == Errc::kTimedOut;
  const bool had_opened = flow.state() >= SendFlow::State::kGreeting;
  if (was_stalled && !flow.leaves_path) pause_moves(now);
  flow.drop(SendFlow::State::kGone);
  flow.doubted_at = kNever;
  doubt_flow(flow);
  has_asked_ = false;  // The request may be lost. The next credit shows whether to ask again.
  if (peer_closed_) return advance(now);  // The peer has everything.
  // TCP has probed a new flow's path in vain: another port may use the same path, and the reason is
  // known. Only a flow that has served before tries other ports.
  const bool takes_no_full_packets =
      error.code == Errc::kPathMtu && flow.redials == 0 && flow.early_deaths == 0;
  if (takes_no_full_packets && flow.index() == 0) return fail(error);
  if (flow.index() != 0 && (!flow.was_up() || takes_no_full_packets)) {  // Continue with fewer
                                                                         // flows.
    if (is_closing_) finish_closing();
    return;
  }
  const bool is_out_of_descriptors = error.sys_errno == EMFILE || error.sys_errno == ENFILE;
  if (!was_accepted_ && flow.redials == 0 && !had_opened && !is_out_of_descriptors)
    return fail(error);  // No listener.

  const bool nobody_listens = error.code == Errc::kRefused && flow.redials != 0 && !had_opened;
  if (flow.nobody.is_sure(now, nobody_listens)) {
    release_kept();
    return fail(error);
  }

  if (was_serving) {
    const bool has_served_us = has_served(now, flow);
    flow.early_deaths = has_served_us ? 0 : flow.early_deaths + 1;
    flow.redials = 0;
    if (was_stalled && !has_served_us && is_payload_stuck(flow)) {
      // Its handshake arrived, but no bytes written afterwards.
      error = Error{Errc::kPathMtu, 0, "handshakes arrive, payload does not"};
      segment_limit_ = static_cast<std::uint8_t>(std::min(segment_limit_ + 1, 2));
    }
  }
  if (flow.redials == 0) {
    flow.lost_since = was_stalled && has_outstanding() ? flow.stalled_since() : now;
    // A flow given up before its TCP gave up keeps the time that TCP would have waited.
    const TimePoint gives_up = is_given_up ? flow.lost_since + settings_.sender_notices : now;
    flow.redial_until = std::max(now, gives_up) + settings_.redial_window;
  }
  // The last attempt goes out as the window closes: the end of an outage within it is never missed.
  const TimePoint last = flow.redial_until;
  if (flow.early_deaths > settings_.max_redials || now >= last) return fail(error);
  const std::uint32_t in_vain = flow.redials + std::max(flow.early_deaths, 1U) - 1;
  const TimePoint again = std::min(last, now + redial_delay(in_vain));
  ++flow.redials;
  flow.wait_until(again);
  if (is_closing_) finish_closing();
}

void SendSession::move_flows(TimePoint now, FlowSet dead, Stream* fresh) {
  for (SendFlow& flow : flows_) {
    if (!dead[flow.index()] || is_ended()) continue;
    flow.is_given_up = true;
    on_flow_lost(now, flow, Error{Errc::kTimedOut, 0, "no acknowledgement"});
    if (fresh == nullptr || flow.state() != SendFlow::State::kWaiting) continue;
    // Userspace TCP, the only one with such streams, finds the path's packet size itself.
    flow.segment_bytes = 0;
    flow.adopt(now, *std::exchange(fresh, nullptr), attempt_timeout(flow));
  }
  if (fresh != nullptr) fresh->abort();
}

void SendSession::leave_path(TimePoint now, SendFlow& flow, Stream& fresh) {
  flow.leaves_path = true;
  move_flows(now, FlowSet().set(flow.index()), &fresh);
}

// An orderly FIN follows a bye. Acknowledgements for this flow may still arrive (tcp/ reports them
// at the end of a burst); the flow ends after them.
void SendSession::on_flow_closed(TimePoint now, SendFlow& flow) {
  if (is_ended()) return;
  if (!peer_closed_) return on_flow_lost(now, flow, Error{Errc::kPeerClosed, 0, "FIN without bye"});
  flow.set_peer_finished();
  if (flow.is_drained()) flow.close();
}

// The receiver closes. It may do so as soon as it has everything, before our last acknowledgements
// have arrived.
void SendSession::on_bye(TimePoint now, const Bye& bye) {
  if (bye.messages < posted_)
    return fail(Error{Errc::kPeerClosed, 0, "the receiver closed with messages outstanding"},
                FailureDetail{bye.process_ends ? Reason::kProcessEnded : Reason::kClosed,
                              /*from_peer=*/true, bye.messages, posted_});
  if (bye.messages > posted_ || !unsent_.empty())
    return fail(Error{Errc::kProtocol, 0, "bye"}, FailureDetail{Reason::kProtocol});
  peer_closed_ = true;
  peer_process_ended_ = bye.process_ends;
  lanes_.for_each([&](SendLane& lane) { credit_.on_all_received(lane); });
  advance(now);
}

// The NIC decides whether the next port leads to that queue. A resume may try as long as it may
// redial.
void SendSession::on_other_queue(TimePoint now, SendFlow& flow) {
  // With eight queues, this many tries fail once in 5000 times.
  constexpr std::uint32_t kMostTries = 64;
  const bool comes_back = flow.redials != 0 && now < flow.redial_until;
  if (!comes_back && flow.other_queues >= kMostTries)
    return on_flow_lost(now, flow, Error{Errc::kRefused, 0, "dial: no port to the peer's queue"});
  ++flow.other_queues;
  flow.drop(SendFlow::State::kGone);
  flow.wait_until(now);
}

void SendSession::on_refusal(TimePoint now, SendFlow& flow, const Refusal& refusal) {
  if (refusal.reason == Reason::kOtherQueue) return on_other_queue(now, flow);
  if (is_leaving_) return end_closed();  // The receiver knows already.
  const Error error{to_errc(refusal.reason), 0, "the peer refused"};
  if (flow.index() != 0 && !flow.was_up()) return on_flow_lost(now, flow, error);
  if (refusal.reason == Reason::kUnknownSession && was_accepted_ && !has_outstanding()) {
    peer_closed_ = true;  // It closed while this flow was down, and nothing is outstanding.
    flow.drop(SendFlow::State::kGone);
    if (is_closing_) finish_closing();
    return;
  }
  if (refusal.reason == Reason::kClosed && was_accepted_) {  // Replaces the bye that was lost with
                                                             // its flows.
    flow.drop(SendFlow::State::kGone);
    return on_bye(now, Bye{refusal.ours});
  }
  fail(error, FailureDetail{refusal.reason, /*from_peer=*/true, refusal.ours, refusal.theirs});
}

void SendSession::on_refused_here(TimePoint now, SendFlow& flow, const FailureDetail& detail) {
  const Error error{to_errc(detail.reason), 0, "handshake"};
  if (flow.index() != 0 && !flow.was_up()) return on_flow_lost(now, flow, error);
  fail(error, detail);
}

void SendSession::on_protocol_error(TimePoint now, SendFlow& flow, const char* where) {
  const Error error{Errc::kProtocol, 0, where};
  if (flow.index() != 0 && !flow.was_up()) return on_flow_lost(now, flow, error);
  fail(error, FailureDetail{Reason::kProtocol});
}

StreamHealth SendSession::health() const {
  StreamHealth all;
  for (const SendFlow& flow : flows_) all.add_beside(flow.health());
  return all;
}

}  // namespace ztcp::msg
