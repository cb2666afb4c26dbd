// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/comm_state.h"

#include <fmt/format.h>

#include "transport/core/process_mark.h"
#include "transport/link/process_limits.h"
#include "transport/msg/reason.h"

namespace ztcp::ustack {
namespace {

// What an operator can do about it.
std::string advice(const Error& error, link::LinkState link, const Poller& poller) {
  if (link::is_lost(link)) return "; " + poller.lost_reason() + ": " + poller.lost_advice();
  if (link == link::LinkState::kDown) {
    // A link that ran into a limit of this process stays down without a word, too.
    const std::string limits = link::advice_on_files();
    return "; no carrier on " + poller.link_description() + ": " +
           (limits.empty() ? "is ztcp_switch, or the process at its other end, running?" : limits);
  }
  switch (error.code) {
    case Errc::kTimedOut:
      return "; is the process on that host alive, and may TCP pass between the two NICs?";
    case Errc::kPathMtu:
      return "; compare mtu_bytes in both hosts' ztcp.conf with the network's: run ztcp_setup "
             "--check";
    case Errc::kProtocol:
      return "; install the same ztcp on both hosts and see that their cluster_key is equal";
    case Errc::kRefused:
      return "; the peer's process may have ended or restarted";
    case Errc::kFull:
      return "; raise max_connections in [tcp] of that host's ztcp.conf, or let NCCL open fewer "
             "connections (NCCL_NCHANNELS_PER_NET_PEER=1)";
    case Errc::kNoRoute:
      return "; compare address and gateway in both hosts' ztcp.conf";
    case Errc::kTruncated:
      return "; the ranks disagree about the size or the order of their collectives";
    default:
      return "";
  }
}

}  // namespace

Result<bool> Slot::test(std::span<std::size_t> sizes_bytes) {
  return comm_->test(*this, sizes_bytes.empty() ? nullptr : sizes_bytes.data());
}

CommState::CommState(Poller& poller, Engine& engine, Direction direction, Endpoint remote)
    : poller_(poller),
      engine_(engine),
      direction_(direction),
      remote_(remote),
      slots_(*this),
      sends_(direction == Direction::kSend ? new LentSend[SlotTable::kSlots] : nullptr),
      receives_(direction == Direction::kReceive ? new LentRecv[SlotTable::kSlots] : nullptr) {}

CommState::~CommState() {
  if (sender_ != nullptr) engine_.destroy(*sender_);
}

Result<CommState*> CommState::connect(Poller& poller, Engine& engine, Endpoint remote,
                                      const msg::Cookie& cookie) {
  if (engine.is_full()) return fail(Errc::kFull, "connect");
  auto owned = std::unique_ptr<CommState>(new CommState(poller, engine, Direction::kSend, remote));
  CommState* state = owned.get();
  state->index_ = ZTCP_TRY(poller.attach(std::move(owned)));
  state->sender_ = &engine.connect(remote, cookie, *state);
  return state;
}

Result<CommState*> CommState::adopt(Poller& poller, Engine& engine,
                                    std::unique_ptr<msg::RecvSession> session) {
  auto owned = std::unique_ptr<CommState>(
      new CommState(poller, engine, Direction::kReceive, session->remote()));
  CommState* state = owned.get();
  const auto index = poller.attach(std::move(owned));
  if (!index) {
    session->abort();
    return tl::unexpected(index.error());
  }
  state->index_ = *index;
  state->receiver_ = std::move(session);
  state->receiver_->set_owner(*state);
  state->ready_.store(true, std::memory_order_release);
  return state;
}

Result<Request*> CommState::post(std::byte* data, std::size_t size_bytes,
                                 std::uint32_t memory_key) {
  if (in_forked_child()) [[unlikely]] {
    return fail(Errc::kForked, "post");
  }
  if (failed()) [[unlikely]] {
    return tl::unexpected(report());
  }
  Slot* slot = slots_.post(data, size_bytes, memory_key);
  if (slot == nullptr) {
    poller_.progress();
    return nullptr;
  }
  poller_.ring(index_);
  poller_.kick();
  return slot;
}

Result<bool> CommState::test(Slot& slot, std::size_t* size_bytes) {
  if (slots_.take_done(slot, size_bytes)) return true;
  if (in_forked_child()) [[unlikely]] {
    return fail(Errc::kForked, "test");
  }
  poller_.progress();
  if (slots_.take_done(slot, size_bytes)) return true;
  if (failed()) [[unlikely]] {
    return tl::unexpected(report());
  }
  return false;
}

Error CommState::report() {
  if (!reported_.exchange(true)) {
    const std::string number =
        error_.sys_errno != 0 ? ", errno " + std::to_string(error_.sys_errno) : "";
    poller_.end_log().failed(
        remote_.address, error_.code,
        fmt::format("{} {} failed: {} ({}{}){}{}; {} messages ({} bytes) done, {} in flight; the "
                    "NIC retransmitted {} bytes and timed out {} times{}",
                    direction_ == Direction::kSend ? "sending to" : "receiving from",
                    to_string(remote_), describe(error_.code), error_.where, number,
                    snapshot_.detail.empty() ? "" : ": ", snapshot_.detail, snapshot_.messages_done,
                    snapshot_.bytes_done, snapshot_.in_flight, snapshot_.retransmitted_bytes,
                    snapshot_.rto_fired, advice(error_, snapshot_.link, poller_)));
  }
  return error_;
}

void CommState::on_doorbell(TimePoint now) {
  slots_.drain([&](std::uint32_t index, std::byte* data, std::size_t size, std::uint32_t key) {
    if (session_over_) return;  // The slot stays posted; test() reports the failure.
    ++in_flight_;
    poller_.note_outstanding(1);
    if (sender_ != nullptr) {
      sends_[index].slot = index;
      sends_[index].start({data, size}, /*tag=*/0, key);
      sender_->post(now, sends_[index]);
    } else {
      receives_[index].slot = index;
      receives_[index].start({data, size}, /*tag=*/0);
      receiver_->post(now, receives_[index]);
    }
  });
}

void CommState::on_link_lost(TimePoint now) {
  fail_now(now, poller_.lost_error());
  if (closing_) retire();
}

void CommState::on_peer_died(TimePoint now, Ipv4Address peer, const std::string& why) {
  if (remote_.address != peer) return;
  // Whoever has closed in peace may end: what it left here can still be received.
  const bool needs_peer = sender_ != nullptr ? sender_->needs_peer() : receiver_->needs_peer();
  if (!needs_peer) return;
  fail_now(now, Error{Errc::kPeerClosed, 0, "watch"}, why);
  if (closing_) retire();
}

// NCCL's threads may still be inside: what they wait for does not end any more, which is no failure
// to tell of. Who closes in peace is left to it.
void CommState::say_goodbye(TimePoint now) {
  if (session_over_ || closing_) return;
  session_over_ = leaving_ = true;
  poller_.abandon_payload();
  if (sender_ != nullptr) {
    sender_->leave(now);
  } else {
    receiver_->leave(now);
  }
}

void CommState::cut_off(TimePoint) {
  if (leaving_ || closing_) abort_session();
}

void CommState::on_ready(TimePoint) { ready_.store(true, std::memory_order_release); }

void CommState::on_done(msg::SendMessage& message) {
  complete(static_cast<LentSend&>(message).slot, message.size_bytes());
}

void CommState::on_done(msg::RecvMessage& message) {
  complete(static_cast<LentRecv&>(message).slot, message.size_bytes());
}

void CommState::complete(std::uint32_t slot, std::size_t size_bytes) {
  --in_flight_;
  poller_.note_outstanding(-1);
  ++messages_done_;
  bytes_done_ += size_bytes;
  slots_.complete(slot, size_bytes);
}

void CommState::on_session_failed(Error error) {
  if (leaving_) return;
  note_failed(error);
  if (closing_) retire();
}

void CommState::on_session_closed() {
  if (leaving_) return;
  if (closing_) {
    session_over_ = true;
    retire();
  } else {
    note_failed(Error{Errc::kPeerClosed, 0, "session"});  // Heard of only if NCCL posts again.
  }
}

void CommState::note_failed(Error error, std::string detail) {
  session_over_ = true;
  if (detail.empty())
    detail =
        msg::describe(sender_ != nullptr ? sender_->failure_detail() : receiver_->failure_detail());
  // From failed_ on NCCL may free what was posted, so nothing queued may point there.
  poller_.abandon_payload();
  poller_.note_outstanding(-static_cast<std::ptrdiff_t>(in_flight_));
  error_ = error;
  snapshot_ = {.messages_done = messages_done_,
               .bytes_done = bytes_done_,
               .in_flight = in_flight_,
               .retransmitted_bytes = engine_.tcp_counters().tx_retransmitted_bytes,
               .rto_fired = engine_.tcp_counters().rto_fired,
               .link = poller_.link_state(),
               .detail = std::move(detail)};
  in_flight_ = 0;
  failed_.store(true, std::memory_order_release);
}

void CommState::abort_session() {
  if (sender_ != nullptr) {
    sender_->abort();
  } else {
    receiver_->abort();
  }
}

void CommState::fail_now(TimePoint, Error error, std::string detail) {
  if (session_over_) return;
  abort_session();
  note_failed(error, std::move(detail));
}

void CommState::close(TimePoint now) {
  if (leaving_) return;  // Its last words may still be under way; the kernel frees the rest.
  closing_ = true;
  on_doorbell(now);
  if (session_over_) {
    retire();
  } else if (in_flight_ != 0 || !ready()) {
    fail_now(now, Error{Errc::kAborted, 0, "close"});
    retire();
  } else if (sender_ != nullptr) {
    sender_->close();
  } else {
    receiver_->close();
  }
}

void CommState::retire() {
  if (retired_) return;
  retired_ = true;
  poller_.retire(index_);
}

}  // namespace ztcp::ustack
