// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The data path of a connection: its session, and the queue pairs and streams of its rails, to
// which the session posts. Used by the comm's thread; over several rails also by the control
// thread, both under the connection's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/direction.h"
#include "transport/stats/counters.h"
#include "transport/transport.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/figures.h"
#include "transport/verbs/queue_pairs.h"
#include "transport/verbs/rail_state.h"
#include "transport/verbs/session/recv_session.h"
#include "transport/verbs/session/send_session.h"
#include "transport/verbs/session/slot.h"

namespace ztcp::verbs {

class Traffic final : public WorkQueues, public Landings {
 public:
  explicit Traffic(Direction direction) : direction_(direction) {}

  // --- The control thread, before the connection is ready ----------------------------------------
  // Keeps the rails that both ends have. `recovers`: a rail may fail and come back.
  void set_rails(std::vector<RailState> rails, const EndFacts& peer, bool recovers);
  RailState& add_rail(std::shared_ptr<Rail> rail);
  // A receiver posts its receives before the peer may send. `ring`: of a sender the memory that the
  // peer writes, of a receiver the memory that it writes from.
  Status start(Ring& ring);

  // --- Under the connection's lock ---------------------------------------------------------------
  std::span<RailState> rails() { return rails_; }
  std::span<const RailState> rails() const { return rails_; }
  EndFacts& peer_facts() { return peer_facts_; }
  const EndFacts& peer_facts() const { return peer_facts_; }
  bool recovers() const { return recovers_; }
  // Once started.
  bool is_sender() const { return sender_.has_value(); }
  SendSession& sender() { return *sender_; }
  RecvSession& receiver() { return *receiver_; }
  bool is_idle() const {
    return (!sender_ || sender_->is_idle()) && (!receiver_ || receiver_->is_idle());
  }
  Figures& figures() { return figures_; }
  std::size_t index_of(const RailState& state) const {
    return static_cast<std::size_t>(&state - rails_.data());
  }
  // A queue pair's rail, and the device's number of it, for a profiler.
  PieceFacts facts_of(std::uint32_t queue_pair) const {
    const Place& at = places_[queue_pair];
    PieceFacts facts{};
    facts.rail = static_cast<std::uint32_t>(at.rail);
    if (at.queues != nullptr) facts.queue_pair = at.queues->number(at.index);
    return facts;
  }
  // Posts for the rail go to its current queue pairs or stream from now on.
  void route(const RailState& state);

  // A successful completion of a rail that is polled.
  Status take(const RailState& state, const ibv_wc& completion);
  Status take(const RailState& state, const PieceStream::Told& told);
  // All work ends with an error; nothing is posted any more.
  void abort();
  // Whether a rail's queue pair has refused a work request (RailState::broken_by).
  bool has_broken() const { return broken_count_ != 0; }
  void mend(RailState& state);

  // --- Any thread, once started; before, they are 0 ----------------------------------------------
  bool is_aborted() const { return is_aborted_; }
  std::uint64_t messages_begun() const;
  std::uint64_t messages_done() const;
  // Messages that are posted and not done.
  std::uint32_t in_flight() const;
  std::uint64_t carried_bytes(std::uint32_t rail) const;
  std::uint64_t backlog_bytes(std::uint32_t rail) const;  // A sender's.
  // A sender's message was not taken, because the peer has posted no buffer for it; and how often
  // that began.
  bool lacks_slot() const { return sender_ && sender_->lacks_slot(); }
  std::uint64_t slot_waits() const { return sender_ ? sender_->slot_waits() : 0; }
  const Figures& figures() const { return figures_; }
  // Adds all that it counts, except for its rails' failures.
  void add_to(stats::CounterValues& sums) const;

  // --- The session -------------------------------------------------------------------------------
  Status post(std::uint32_t queue_pair, const WorkRequest& request) override {
    const Place& at = places_[queue_pair];
    if (at.queues == nullptr) [[unlikely]] {
      at.stream->pieces.post(request);
      return {};
    }
    const Status posted = at.queues->post(at.index, request);
    return posted ? posted : note_broken(at, posted);
  }
  // A stream needs no receives.
  Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override {
    const Place& at = places_[queue_pair];
    if (at.queues == nullptr) return {};
    const Status posted = at.queues->post_receives(at.index, count);
    return posted ? posted : note_broken(at, posted);
  }
  Result<Landing> place(const StreamRecord& record) override {
    return sender_ ? sender_->place(record) : receiver_->place(record);
  }

 private:
  // Where a queue pair's number leads to.
  struct Place {
    QueuePairs* queues = nullptr;
    std::uint32_t index = 0;
    RailStream* stream = nullptr;  // For a rail of TCP, which has no queue pairs.
    std::size_t rail = 0;
  };

  Status note_broken(const Place& at, const Status& why);
  RecvSettings receive_settings(const std::vector<QueuePairFacts>& queue_pairs) const;
  std::vector<QueuePairFacts> queue_pair_facts() const;

  const Direction direction_;
  std::vector<RailState> rails_;
  std::array<Place, kMaxQueuePairs> places_{};
  std::optional<SendSession> sender_;
  std::optional<RecvSession> receiver_;
  Figures figures_;
  EndFacts peer_facts_;
  bool recovers_ = false;
  std::uint32_t broken_count_ = 0;
  std::atomic<bool> is_aborted_{false};
};

}  // namespace ztcp::verbs
