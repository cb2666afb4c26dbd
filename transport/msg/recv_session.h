// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The listening side of a NCCL connection: messages over up to eight byte streams. Three files:
// recv_session.cc (life: flows joining and leaving, credit), recv_ends.cc (closing, aborting,
// failing) and recv_sink.cc (placement of bytes, and when a message is done). Made by the acceptor,
// owned by the user of the listener.
//
// Pure: time is an argument, output goes through Stream, events come through StreamEvents, memory
// is allocated only at construction. Belongs to the thread that owns the streams. With workers,
// payload may be copied for a while after it has arrived (CopyJobs); a message, an end or a failure
// is reported only when no worker writes there any more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/address.h"
#include "core/unprotected.h"
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
  // Called by the acceptor.
  RecvSession(Acceptor& acceptor, const SessionSettings& settings, const Hello& hello,
              std::uint32_t allowance_bytes, Endpoint remote);
  ~RecvSession();
  RecvSession(const RecvSession&) = delete;
  RecvSession& operator=(const RecvSession&) = delete;

  void set_owner(RecvOwner& owner);  // Once, before the first post().
  // DSCP of our packets on the flows that join from now on; without it they have the NIC's.
  void set_dscp(std::uint8_t dscp) { dscp_ = dscp; }

  // Posts the buffer of a record that was start()ed, for the next message of its tag; the record is
  // lent until on_done(), after which size_bytes() is the received size. A message larger than the
  // buffer fails the session with kTruncated. A session that has ended ignores it: its owner was
  // told how it ended, or will be.
  void post(TimePoint now, RecvMessage& message);

  // close(): tells the sender that nothing more will be received, FIN on every flow, then
  // on_session_closed(). abort(): RST on every flow, now, and no further event. give_up(): like
  // abort(), but tells the sender that its messages will not be received.
  void close();
  void abort();
  void give_up();
  // The process ends: tells the sender at once. From here on no posted memory is written, arriving
  // bytes are dropped, and no event follows.
  void leave(TimePoint now);

  // The acceptor calls these too; further calls are harmless.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;

  // False once the sender has closed, or is lost: all that can still be received of it is here, and
  // its end loses nothing.
  bool needs_peer() const { return !has_bye_ && !is_sender_lost_; }
  Endpoint remote() const { return remote_; }
  const HostName& peer_host() const { return peer_host_; }
  // Bytes taken, or promised to chunks under way, without a posted buffer: never above the eager
  // allowance.
  std::uint64_t unposted_bytes() const { return bounce_.reserved_bytes(); }
  std::uint32_t allowance_bytes() const { return bounce_.allowance_bytes(); }
  // Valid after on_session_failed().
  const FailureDetail& failure_detail() const { return failure_; }
  // Sums over streams that ended, except those that closed in order.
  const StreamHealth& health() const { return health_; }
  // For the statistics page.
  Awaited awaited();
  void for_each_stream(const std::function<void(std::size_t, const Stream&)>& visit) const;

  // --- Called by the acceptor ---
  std::uint64_t id() const { return id_; }
  const Cookie& cookie() const { return cookie_; }
  bool is_running() const { return state_ == State::kRunning; }
  std::uint8_t flows_granted() const { return flows_granted_; }
  std::uint32_t epoch(std::size_t flow) const { return epochs_[flow]; }
  // Adds a flow after its handshake. An older stream of the same index ends first.
  void attach(TimePoint now, std::unique_ptr<RecvFlow> flow);
  // Whether a resume may join: neither side has announced the end.
  bool takes_flows() const { return is_running() && sender_left_ == Reason::kNone; }
  // The sender announced its end with messages outstanding: its process ended, or it aborted.
  void on_sender_left(TimePoint now, Reason why);
  // Sends the credit it owes.
  void flush_owed();
  // The acceptor is being destroyed, and must not be used any more.
  void orphan();

  // --- Called by the probe ---
  void wake_at(TimePoint when);
  // Its host refuses connections where the sender's process listened.
  void on_sender_gone(TimePoint now);

  // --- Called by CopyJobs ---
  void on_copied(TimePoint now, RecvMessage& message) override;

  // --- Called by the flows ---
  void on_chunk(TimePoint now, RecvFlow& flow, const Chunk& chunk);
  void on_payload(TimePoint now, RecvFlow& flow, std::span<const std::byte> bytes);
  // Destination of the next `bytes` of the chunk being read, for code that places them directly and
  // then calls on_placed(); empty: use on_payload().
  Place place(const RecvFlow& flow, std::size_t bytes);
  void on_placed(TimePoint now, RecvFlow& flow, std::size_t bytes);
  // Lends place() to another thread until on_placed(), or until the flow's stream is closed or
  // aborted. Before the session ends or returns memory it waits for that thread
  // (Stream::settle_place(), abort(), close()); no message can be done meanwhile, since no other
  // flow may bring the same bytes.
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
  // Both return when no thread writes to posted memory any more.
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
  const bool sender_shares_nic_;
  const HostName peer_host_;
  const std::uint8_t flows_granted_;
  RecvOwner* owner_ = nullptr;
  std::optional<std::uint8_t> dscp_;

  State state_ = State::kRunning;
  bool owes_credit_ = false;  // In the acceptor's list.
  bool must_tell_ = false;    // The sender may be waiting for the changes.
  bool is_asked_ = false;     // It also waits for the next change.
  bool has_bye_ = false;
  bool is_sender_lost_ = false;         // For good; messages that came before wait for buffers.
  Reason sender_left_ = Reason::kNone;  // The reason that the sender gave.
  std::uint64_t bye_messages_ = 0;      // Count in the sender's bye.
  // Set while no flow is left: when it passes, the sender is given up because of resume_error_.
  TimePoint resume_deadline_ = kNever;
  Error resume_error_;
  SenderProbe probe_{*this};  // Active meanwhile.
  // A failure that could not be reported because there was no owner yet.
  bool has_untold_failure_ = false;
  Error untold_failure_;
  FailureDetail failure_;
  StreamHealth health_;

  Lanes<RecvLane> lanes_;
  LaneList<RecvLane> changed_;  // Lanes with credit to tell, now or later.
  std::uint64_t released_ = 0;
  std::uint64_t received_ = 0;  // Messages done, of all lanes.
  std::uint64_t told_released_ = 0;
  std::uint64_t untold_received_ = 0;  // Messages, counted in the order of their lanes.
  std::uint64_t outstanding_ = 0;      // Posted buffers that are not done.
  std::size_t places_lent_ = 0;        // To flows.
  RecvFlow* heard_last_ = nullptr;     // Credit goes there: it is alive if any is.
  TimePoint watch_at_ = kNever;        // Next check whether flows carry credit.
  bool must_watch_ = false;            // Some credit is not known to have arrived.
  std::uint64_t watched_received_ = 0;
  std::array<std::uint32_t, kMaxFlows> epochs_{};
  std::array<std::unique_ptr<RecvFlow>, kMaxFlows> flows_;
  Bounce bounce_;
  UnexpectedPool unexpected_;
};

}  // namespace ztcp::msg
