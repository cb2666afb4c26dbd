// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The listening side of a NCCL connection: messages over up to eight byte streams. Three files:
// recv_session.cc (life: flows joining and leaving, credit), recv_ends.cc (closing, aborting,
// failing) and recv_sink.cc (where bytes go, and when a message is done). Made by the acceptor,
// owned by whoever the listener handed it to.
//
// Pure: told the time, speaks through Stream, hears through StreamEvents, allocates only at
// construction. Belongs to the thread that owns the streams. Where there are workers, payload may
// be on its way to its buffer for a while after it has come (CopyJobs); who hears of a message, of
// an end or of a failure hears of it when nobody writes there any more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/core/address.h"
#include "transport/core/unprotected.h"
#include "transport/msg/bounce.h"
#include "transport/msg/copy_jobs.h"
#include "transport/msg/lane.h"
#include "transport/msg/record.h"
#include "transport/msg/recv_message.h"
#include "transport/msg/sender_probe.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class Acceptor;
class RecvFlow;

class RecvSession final : public CopyClient {
 public:
  // The acceptor makes it.
  RecvSession(Acceptor& acceptor, const SessionSettings& settings, const Hello& hello,
              std::uint32_t allowance_bytes, Endpoint remote);
  ~RecvSession();
  RecvSession(const RecvSession&) = delete;
  RecvSession& operator=(const RecvSession&) = delete;

  void set_owner(RecvOwner& owner);  // Once, before the first post().

  // Posts the buffer of a record that was start()ed, for the next message of its tag; the record is
  // lent until on_done(), and its size_bytes() tell what was received. A message larger than the
  // buffer fails the session with kTruncated. A session that has ended takes it no more: its owner
  // was told how, or will be.
  void post(TimePoint now, RecvMessage& message);

  // Tells the sender that nothing will be received any more, FIN on every flow, then
  // on_session_closed(). abort(): RST on every flow, now, and no further event. give_up(): the
  // same, but it tells the sender that nobody will take its messages.
  void close();
  void abort();
  void give_up();
  // The process ends: tells the sender so at once. From here on no posted memory is written, what
  // arrives is thrown away, and no event follows.
  void leave(TimePoint now);

  // The acceptor drives these too; calling them besides does no harm.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;

  // False once the sender has closed, or is lost: what can be had of it is here, and its end takes
  // nothing away.
  bool needs_peer() const { return !has_bye_ && !is_sender_lost_; }
  Endpoint remote() const { return remote_; }
  // Bytes taken, or promised to chunks under way, without a posted buffer: never above the eager
  // allowance.
  std::uint64_t unposted_bytes() const { return bounce_.reserved_bytes(); }
  std::uint32_t allowance_bytes() const { return bounce_.allowance_bytes(); }
  // Valid once on_session_failed() was told.
  const FailureDetail& failure_detail() const { return failure_; }
  // Of the streams that are gone, other than in peace.
  const StreamHealth& health() const { return health_; }

  // --- The acceptor's ---
  std::uint64_t id() const { return id_; }
  const Cookie& cookie() const { return cookie_; }
  bool is_running() const { return state_ == State::kRunning; }
  std::uint8_t flows_granted() const { return flows_granted_; }
  std::uint32_t epoch(std::size_t flow) const { return epochs_[flow]; }
  // Takes a flow that has shaken hands. An older stream of the same index ends first.
  void attach(TimePoint now, std::unique_ptr<RecvFlow> flow);
  // What a resume may join: neither end has said that it is over.
  bool takes_flows() const { return is_running() && sender_left_ == Reason::kNone; }
  // The sender said so, with messages outstanding: its process ended, or it aborted.
  void on_sender_left(TimePoint now, Reason why);
  // Sends the credit it owes.
  void flush_owed();
  // The acceptor is going: nothing of it may be used any more.
  void orphan();

  // --- The probe's ---
  void wake_at(TimePoint when);
  // Its host says that the process which listened there does no more.
  void on_sender_gone(TimePoint now);

  // --- CopyJobs' ---
  void on_copied(TimePoint now, RecvMessage& message) override;

  // --- The flows' ---
  void on_chunk(TimePoint now, RecvFlow& flow, const Chunk& chunk);
  void on_payload(TimePoint now, RecvFlow& flow, std::span<const std::byte> bytes);
  // Where the next `bytes` of the chunk being read may be put by others; empty: on_payload() wants
  // them. Then they are there.
  Place place(const RecvFlow& flow, std::size_t bytes);
  void on_placed(TimePoint now, RecvFlow& flow, std::size_t bytes);
  // place() is another thread's until on_placed(), or until the flow's stream has been let go. Who
  // ends the session or hands memory back waits for that thread (Stream::settle_place(), abort(),
  // close()); no message can be done meanwhile, since no other flow may bring the same bytes.
  bool lend_place(RecvFlow& flow);
  void on_ask();
  void on_bye(TimePoint now, RecvFlow& flow, const Bye& bye);
  void on_refusal(TimePoint now, const Refusal& refusal);
  void on_writable(RecvFlow& flow);
  void note_health(const StreamHealth& health) { health_.add_later(health); }
  void on_flow_closed(TimePoint now, RecvFlow& flow);
  void on_flow_lost(TimePoint now, RecvFlow& flow, Error error);
  void on_protocol_error(TimePoint now, const char* where);

 private:
  enum class State : std::uint8_t { kRunning, kClosing, kFailed, kEnded };

  // recv_sink.cc
  void take(TimePoint now, RecvLane& lane, RecvMessage& message);
  Arrival* begin(TimePoint now, RecvLane& lane, const Chunk& chunk);
  bool fits(TimePoint now, RecvMessage& message, std::uint64_t total);
  template <class Of>
  bool overlaps_another(const RecvFlow& flow, Of&& of);
  void take_back_place(RecvFlow& flow);
  void reserve(TimePoint now, RecvFlow& flow, UnexpectedMessage& m, const Chunk& chunk);
  ZTCP_UNPROTECTED bool sink(TimePoint now, Arrival& m, RecvFlow& flow, std::uint64_t from,
                             std::span<const std::byte> bytes);
  void hold(Arrival& m, RecvFlow& flow, std::uint64_t from, std::uint64_t to);
  void settle(TimePoint now, RecvLane& lane, Arrival& m, std::uint64_t number);
  void take_over(UnexpectedMessage& from, RecvMessage& to, RecvLane& lane, std::uint64_t number);
  void drop_chunk(RecvFlow& flow);
  void finish(TimePoint now, RecvLane& lane, std::uint64_t number);
  void admit_waiting(TimePoint now, RecvLane& lane);
  std::size_t count_copying();

  // recv_session.cc
  Credit credit_of(const RecvLane& lane) const {
    return {lane.posted, released_, lane.received, lane.tag};
  }
  void change(RecvLane& lane) { changed_.add(lane); }
  bool are_news_urgent() const;
  void note_news();
  void tell_soon();
  void owe_credit();
  void flush();
  bool tell(const Credit& credit);
  void tell_state(RecvFlow& flow);
  bool tell_maps(RecvFlow& flow, RecvLane& lane);
  void drop_flow(RecvFlow& flow);
  bool has_living_flow() const;
  void wait_for_resume(TimePoint now, Error error);
  void watch_from(TimePoint now);
  void watch(TimePoint now);
  void stop_waiting();
  void give_up_sender(TimePoint now, Error error);
  void finish_closing();
  void check_after_bye(TimePoint now);
  FailureDetail why_sender_left() const {
    if (sender_left_ == Reason::kNone) return {};
    return {sender_left_, /*from_peer=*/true};
  }
  // Nobody writes to posted memory any more.
  void settle_places();
  void stop_writing();
  void fail_without_lane(TimePoint now);
  void fail(TimePoint now, Error error, const FailureDetail& detail = {});

  Acceptor* acceptor_;
  CopyJobs* const copies_;  // Null: there are no workers.
  const SessionSettings settings_;
  const Cookie cookie_;
  const std::uint64_t id_;
  const Endpoint remote_;
  const Endpoint sender_listening_;
  const std::uint8_t flows_granted_;
  RecvOwner* owner_ = nullptr;

  State state_ = State::kRunning;
  bool owes_credit_ = false;  // In the acceptor's list.
  bool must_tell_ = false;    // The sender may wait for what changed.
  bool is_asked_ = false;     // And for what changes next.
  bool has_bye_ = false;
  bool is_sender_lost_ = false;         // For good; messages that came before wait for buffers.
  Reason sender_left_ = Reason::kNone;  // Why, as it said.
  std::uint64_t bye_messages_ = 0;      // What the sender's bye said.
  // Set while no flow is left: then the sender is given up, because of resume_error_.
  TimePoint resume_deadline_ = kNever;
  Error resume_error_;
  SenderProbe probe_{*this};  // Meanwhile.
  // A failure the owner has not been told: it was not set yet.
  bool has_untold_failure_ = false;
  Error untold_failure_;
  FailureDetail failure_;
  StreamHealth health_;

  Lanes<RecvLane> lanes_;
  LaneList<RecvLane> changed_;  // Lanes with credit to tell, now or at some time.
  std::uint64_t released_ = 0;
  std::uint64_t received_ = 0;  // Messages done, of all lanes.
  std::uint64_t told_released_ = 0;
  std::uint64_t untold_received_ = 0;  // Messages, in the order of their lanes.
  std::uint64_t outstanding_ = 0;      // Buffers posted for others.
  std::size_t places_lent_ = 0;        // To flows.
  RecvFlow* heard_last_ = nullptr;     // Credit goes there: it is alive if any is.
  TimePoint watch_at_ = kNever;        // Whether flows carry credit.
  bool must_watch_ = false;            // Not all that was told is known to have arrived.
  std::uint64_t watched_received_ = 0;
  std::array<std::uint32_t, kMaxFlows> epochs_{};
  std::array<std::unique_ptr<RecvFlow>, kMaxFlows> flows_;
  Bounce bounce_;
  UnexpectedPool unexpected_;
};

}  // namespace ztcp::msg
