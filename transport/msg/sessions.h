// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All sessions over one source of streams: outgoing ones, each of which dials its peer, and the
// acceptor with the incoming ones. Pure, for one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/address.h"
#include "transport/msg/acceptor.h"
#include "transport/msg/send_session.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class Sessions {
 public:
  // `secret` makes session ids and the acceptor's nonces unguessable; `copies`: see Acceptor.
  Sessions(const SessionSettings& settings, const ClusterKey& key, std::size_t max_pending_streams,
           std::array<std::uint64_t, 2> secret, StreamSource& source, CopyJobs* copies = nullptr);
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // Counts the sessions in a budget that other lanes share. To be called before the first session.
  void count_in(SessionBudget& budget) {
    budget_ = &budget;
    acceptor_.count_in(budget);
  }

  // Starts a session to the listener identified by `cookie` at `remote`; it lives until destroy().
  // Never fails: a failed dial is reported by owner.on_session_failed(). `settings`: of its
  // streams.
  SendSession& connect(Endpoint remote, const Cookie& cookie, SendOwner& owner,
                       const DialSettings& settings = {});
  // Not from inside one of the session's own events.
  void destroy(SendSession& session);

  Acceptor& acceptor() { return acceptor_; }
  const Acceptor& acceptor() const { return acceptor_; }

  // Outgoing and incoming ones.
  std::size_t count() const { return outgoing_.size() + acceptor_.sessions(); }
  bool is_full() const { return to_come() == 0; }
  // Sessions that may still be made.
  std::size_t to_come() const {
    const std::size_t here =
        count() < settings_.max_sessions ? settings_.max_sessions - count() : 0;
    return budget_ == nullptr ? here : std::min(here, budget_->left());
  }
  // Sessions that the process waits for when it ends: their peers do not know all yet.
  std::size_t finishing() const;

  // To be called once per turn, after everything received and posted in it: also sends owed credit.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;

 private:
  // An outgoing session and its dialer.
  struct Outgoing final : Dialer {
    Outgoing(Sessions& its_sessions, Endpoint remote, const Cookie& cookie, std::uint64_t id,
             SendOwner& owner, const DialSettings& its_settings);
    Result<Stream*> dial(TimePoint now, StreamEvents& events) override {
      return dial_small(now, events, 0);
    }
    Result<Stream*> dial_small(TimePoint now, StreamEvents& events,
                               std::uint32_t segment_bytes) override {
      DialSettings small = settings;
      small.segment_bytes = segment_bytes;
      return sessions.source_.dial(now, endpoint, events, small);
    }
    PathEvents* path_events() override { return sessions.source_.path_events(); }
    Endpoint remote() const override { return endpoint; }
    bool is_peer_answering_since(TimePoint now, TimePoint since) override {
      return sessions.is_peer_answering_since(now, since, *this);
    }
    bool has_spare() const override { return sessions.source_.has_spare_stream(); }
    void wake_at(TimePoint when) override { sessions.wake_at(when); }
    Endpoint listening() const override { return sessions.source_.listening(); }
    bool shares_nic() const override { return sessions.source_.shares_nic(); }

    Sessions& sessions;
    const Endpoint endpoint;
    const DialSettings settings;
    SendSession session;
  };

  void note_outgoing() { acceptor_.set_other_sessions(outgoing_.size()); }
  void wake_at(TimePoint when);
  void scan_outgoing(TimePoint now);
  bool is_peer_answering_since(TimePoint now, TimePoint since, const Outgoing& doubtful);

  const SessionSettings settings_;
  const ClusterKey key_;
  const std::array<std::uint64_t, 2> secret_;
  StreamSource& source_;
  SessionBudget* budget_ = nullptr;  // Null: max_sessions is the only limit.
  Acceptor acceptor_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  // At or before the earliest deadline of the outgoing sessions, but not before earliest_scan_.
  TimePoint next_scan_ = kNever;
  TimePoint earliest_scan_ = TimePoint::min();
  std::uint64_t session_count_ = 0;
};

}  // namespace ztcp::msg
