// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One connection between two devices, over one rail or several: its queue pairs, the memory that
// the peer writes to, and what the control thread has heard. The control thread joins it and lets
// go of it last; once it is ready all else belongs to the thread of NCCL's that uses its comm. But
// over several rails both use it, under its lock: the control thread tells the peer of rails that
// have failed, hears of the peer's (connection_rails.cc), and brings them back
// (connection_offers.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/core/address.h"
#include "transport/transport.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/note_log.h"
#include "transport/verbs/peer_status.h"
#include "transport/verbs/queue_pairs.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/rail_state.h"
#include "transport/verbs/session/recv_session.h"
#include "transport/verbs/session/send_session.h"
#include "transport/verbs/session/slot.h"

namespace ztcp::verbs {

enum class Direction : std::uint8_t { kSend, kReceive };

// A sender's ring is written by the peer, a receiver's is written from.
struct alignas(4096) ControlMemory {
  Ring ring{};
};

class Connection final : public WorkQueues, public Landings {
 public:
  enum class Phase : std::uint8_t { kConnecting, kReady, kFailed };

  Connection(std::shared_ptr<RailSet> rails, Direction direction, Endpoint peer)
      : rails_(std::move(rails)), direction_(direction), peer_(peer) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- Who makes it ------------------------------------------------------------------------------
  // With what `peer` has, if it has told. `traffic_class`: the communicator's.
  Made<void> prepare(int traffic_class, const EndFacts* peer = nullptr);
  EndFacts facts() const;
  Made<void> join(const EndFacts& peer);
  // Whether it takes a connection manager, too, to join its queue pairs: then, once it was joined,
  // this begins so.
  bool needs_manager() const;
  void begin_cm_connection(std::shared_ptr<ConnectionManager> manager, const Nonce& nonce);
  const CmConnection& cm_connection() const {
    return *rail_states_.front().queues->cm_connection();
  }
  // Where all else fails before its rails of TCP are up for the first time, it waits for them until
  // then. Before it is ready.
  void await_tcp(TimePoint until);
  void succeed() { phase_.store(Phase::kReady, std::memory_order_release); }
  void fail(const Error& error);

  // --- Any thread --------------------------------------------------------------------------------
  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  const Error& error() const { return error_; }  // Of one that failed before it was ready.
  PeerStatus& peer_status() { return peer_status_; }
  const PeerStatus& peer_status() const { return peer_status_; }

  RailSet& rails() const { return *rails_; }
  Direction direction() const { return direction_; }
  Endpoint peer() const { return peer_; }  // Of the exchange.

  // --- Whose it is, under its lock ---------------------------------------------------------------
  // Nobody else is there where there is one rail, of RDMA: then it locks nothing.
  std::unique_lock<std::mutex> lock() {
    return has_recovery_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  // As many as both ends have in common.
  std::span<const RailState> rail_states() const { return rail_states_; }
  ControlMemory& memory() { return *memory_; }
  const EndFacts& peer_facts() const { return peer_facts_; }
  // Since it was joined, that of its direction.
  SendSession& sender() { return *sender_; }
  RecvSession& receiver() { return *receiver_; }
  bool is_idle() const {
    return (!sender_ || sender_->is_idle()) && (!receiver_ || receiver_->is_idle());
  }
  // A completion of a rail_state that is polled, which succeeded.
  Status take(const RailState& rail_state, const ibv_wc& completion);
  Status take(const RailState& rail_state, const PieceStream::Told& told);
  void abort();
  // What has gone over it. Under its lock.
  Carried carried() const;
  // Has the peer's NIC answer, once a second on each rail of RDMA: whether it is there the queue
  // pair's own timeout and retries tell (ack_timeout, NCCL_IB_TIMEOUT). Where these are too long,
  // or for ever, an error says so after 10 minutes to an hour.
  Status probe(TimePoint now);

  // --- Rails that fail (connection_rails.cc) and come back (connection_offers.cc) ----------------
  // The rail has failed: its messages go over the others. False: there is no other that serves, or
  // is awaited.
  bool lose(std::size_t rail, const std::string& why);
  // All of that device; which have that completion queue or queue pair, if one is given.
  bool lose(const OpenDevice& device, const FailedPart& part, const std::string& why);
  // Only where there is another.
  void lose(const Rail& rail, const std::string& why);
  // What does not serve from the first: a port is down, or its queue pairs could not be joined. The
  // peer hears it before anything goes over it. Before it is ready. An error: nothing is left.
  Status lose_unfit();
  // Of one that drains: a completion, whatever it says; and whether it is over with it then.
  void take_drained(std::size_t rail, const ibv_wc& completion);
  void finish_draining(std::size_t rail);
  // What the peer tells. An error ends the connection.
  Status hear(const RailNote& told, TimePoint now);
  // The receiver has closed in peace.
  void peer_has_all();
  // A stream that was dialled with the ticket, if that is of this connection: then it takes it.
  bool take_stream(const Ticket& ticket, link::Fd& fd);
  // Does what is due. An error ends the connection.
  Status advance(TimePoint now);
  TimePoint due() const;
  // Its port is up again: the sender's next offer need not wait.
  void hurry(const Rail& rail, TimePoint now);
  // What the peer is to be told.
  bool has_notes() const { return notes_.has_new(); }
  // A queue pair has taken no more work: then that rail has failed. An error: it was the last.
  bool has_broken() const { return broken_ != 0; }
  bool needs_attention() const { return has_notes() || has_broken(); }
  Status lose_broken();
  NoteLog& notes() { return notes_; }

  Status post(std::uint32_t queue_pair, const WorkRequest& request) override {
    const Place& at = places_[queue_pair];
    if (at.queues == nullptr) [[unlikely]] {
      at.stream->pieces.post(request);
      return {};
    }
    const Status posted = at.queues->post(at.index, request);
    return posted ? posted : note_broken(at, posted);
  }
  // A stream needs none.
  Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override {
    const Place& at = places_[queue_pair];
    if (at.queues == nullptr) return {};
    const Status posted = at.queues->post_receives(at.index, count);
    return posted ? posted : note_broken(at, posted);
  }

 private:
  struct Place {
    QueuePairs* queues = nullptr;
    std::uint32_t index = 0;
    RailStream* stream = nullptr;  // Where it has no queue pairs.
    std::size_t rail = 0;
  };

  // Of several rails: it is lost at the end of what is going on, and what was posted to it with it.
  Status note_broken(const Place& at, const Status& why);

  Result<Landing> place(const StreamRecord& record) override {
    return sender_ ? sender_->place(record) : receiver_->place(record);
  }

  RailKeys memory_lkeys() const;
  RemoteMemory peer_memory() const;
  std::vector<QueuePairFacts> queue_pairs() const;
  void place(const RailState& rail_state);
  bool match(const EndFacts& peer);
  Status start_session();

  bool is_up(const RailState& rail_state) const;
  bool is_lost() const;
  void fence(RailState& rail_state);
  Status hand_over(RailState& rail_state, TimePoint now);
  Status drain(RailState& rail_state, TimePoint now);
  Status fence_mute(RailState& rail_state, TimePoint now);
  Status drop_offer(RailState& rail_state, const std::string& why, TimePoint now);
  void offer(RailState& rail_state, TimePoint now);
  Status accept(RailState& rail_state, const RailNote& told);
  bool open(RailState& rail_state, const RailNote& told);
  bool join_again(RailState& rail_state, const RailNote& told);
  Status prove(RailState& rail_state, const RailNote& told, TimePoint now);
  Status dial(RailState& rail_state, const RailNote& told, TimePoint now);
  Status look_at_proofs(RailState& rail_state, TimePoint now);
  Result<bool> is_welcome(RailState& rail_state);
  Status rejoin(RailState& rail_state);
  std::size_t index_of(const RailState& rail_state) const {
    return static_cast<std::size_t>(&rail_state - rail_states_.data());
  }
  void note(RailNote::Step step, const RailState& rail_state);
  void tell(const RailState& rail_state, RailFacts& facts) const;

  Made<void> add_rail_state(std::size_t rail, const QueuePairSettings& settings);
  RailState& new_rail_state(std::size_t rail);

  const std::shared_ptr<RailSet> rails_;
  std::unique_ptr<ControlMemory> memory_;
  std::vector<RailState> rail_states_;
  bool has_recovery_ = false;  // Its rails may fail and come back.
  TimePoint awaits_until_ = kNever;
  std::array<Place, kMaxQueuePairs> places_{};
  std::optional<SendSession> sender_;
  std::optional<RecvSession> receiver_;
  std::mutex mutex_;
  NoteLog notes_;
  std::uint32_t broken_ = 0;  // A bit for each rail_state.
  Error broken_by_{};
  std::atomic<bool> is_aborted_{false};

  const Direction direction_;
  const Endpoint peer_;
  EndFacts peer_facts_;  // Since it was joined, of the rail_states.
  std::atomic<Phase> phase_{Phase::kConnecting};
  Error error_;
  PeerStatus peer_status_;
};

}  // namespace ztcp::verbs
