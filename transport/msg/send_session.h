// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The connecting side of a NCCL connection: messages over up to eight byte streams. Five files:
// send_session.cc (life: dialling and redialling), send_ends.cc (closing, aborting, failing),
// send_dispatch.cc (which bytes are sent next, on which flow, and when a message is done),
// send_watch.cc (flows that make no progress), send_flow.cc (one flow's handshake and records).
//
// Pure: time is an argument, output goes through Stream, events come through StreamEvents, memory
// is allocated only at construction. Belongs to the thread that owns the streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/intrusive_list.h"
#include "transport/msg/credit.h"
#include "transport/msg/kept_messages.h"
#include "transport/msg/lane.h"
#include "transport/msg/path_scout.h"
#include "transport/msg/send_flow.h"
#include "transport/msg/send_message.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class SendSession {
 public:
  // `session_id` is unique among this process's sessions and unguessable. Starts dialling flow 0
  // at the first on_timers().
  SendSession(const SessionSettings& settings, const ClusterKey& key, const Cookie& cookie,
              std::uint64_t session_id, Dialer& dialer, SendOwner& owner);
  ~SendSession();
  SendSession(const SendSession&) = delete;
  SendSession& operator=(const SendSession&) = delete;

  // Queues a message that was start()ed, as the next of its tag; the record is lent until
  // on_done(), which may come at once. A session that has ended ignores it: its owner was told how
  // it ended, or is just being told.
  void post(TimePoint now, SendMessage& message);

  // close(): FIN on every flow once all messages are done; then on_session_closed(). abort(): RST
  // on every flow, now, and no further event.
  void close();
  void abort();
  // Like abort(), but tells the receiver that the messages will not come. True: no flow could carry
  // that, so a new stream will, within a redial window; on_session_closed() follows.
  [[nodiscard]] bool give_up(TimePoint now);
  // The process ends: tells the receiver at once, by a new stream where the old ones still refer to
  // messages. From here on no posted memory is read and no message is done.
  void leave(TimePoint now);
  // Ends at once, without further events: bytes that are in flight in order and need only the
  // kernel's memory still arrive, followed by a bye. Then like abort().
  void cut_off();
  // The process may not end yet: leave() or give_up() was called, and the receiver is still to be
  // told, or it may not hold all messages of a session that was closed.
  bool is_finishing() const {
    return !is_ended() && (is_leaving_ || (is_closing_ && has_outstanding()));
  }
  // Messages may go both ways between posting and the end.
  bool is_serving() const {
    return state_ == State::kReady && !is_closing_ && !is_leaving_ && !is_aborting_ &&
           !peer_closed_;
  }
  // False once the receiver has closed with all messages: its end loses nothing.
  bool needs_peer() const { return !peer_closed_; }

  void on_timers(TimePoint now);
  TimePoint next_deadline() const;

  // Valid after on_session_failed().
  const FailureDetail& failure_detail() const { return failure_; }
  // Sums over all its streams, once it has failed or was aborted.
  StreamHealth health() const;
  // For the statistics page.
  Awaited awaited();
  std::optional<PeerTrouble> trouble() const { return trouble_; }
  const CreditWait& credit_wait() const { return credit_wait_; }
  const HostName& peer_host() const { return peer_host_; }  // Empty: not known yet.
  // Calls visit(index, stream) for each living flow.
  template <class Visit>
  void for_each_stream(Visit&& visit) const {
    for (std::size_t i = 0; i < flows_.size(); ++i)
      if (const Stream* const stream = flows_[i].stream()) visit(i, *stream);
  }

  // Whether a flow outside `except` was acknowledged, or came up, after `since`. To be called again
  // at the next check: the flows are asked at the first call.
  bool is_answering_since(TimePoint now, TimePoint since, FlowSet except = {});

  // --- Called by the flows ---
  const SessionSettings& settings() const { return settings_; }
  const ClusterKey& key() const { return key_; }
  Hello make_hello(std::uint8_t flow, std::uint32_t epoch) const;
  void wake_at(TimePoint when) { dialer_.wake_at(when); }
  Dialer& dialer() { return dialer_; }

  void on_accept(const Accept& accept);
  [[nodiscard]] bool on_map(SendFlow& flow, const Map& map);
  void on_credit(TimePoint now, const Credit& credit);
  void on_flow_up(TimePoint now, SendFlow& flow, const Ready& ready);
  void on_bye(TimePoint now, const Bye& bye);
  void on_flow_acked(TimePoint now, SendFlow& flow);
  void on_flow_delivered();
  void on_flow_closed(TimePoint now, SendFlow& flow);
  // The stream is gone, or useless.
  void on_flow_lost(TimePoint now, SendFlow& flow, Error error);
  void on_refusal(TimePoint now, SendFlow& flow, const Refusal& refusal);
  void on_refused_here(TimePoint now, SendFlow& flow, const FailureDetail& detail);
  void on_protocol_error(TimePoint now, SendFlow& flow, const char* where);

  // --- Called by the scout ---
  SendFlow& flow(std::size_t index) { return flows_[index]; }
  // The same as is_answering_since(), for other sessions with the peer, too.
  bool is_peer_answering_since(TimePoint now, TimePoint since, FlowSet except);
  // The paths of `dead` are dead; `fresh`, if any, is open and takes another one.
  void move_flows(TimePoint now, FlowSet dead, Stream* fresh);
  // Another path may be better than this flow's; `fresh` is open and takes one.
  void leave_path(TimePoint now, SendFlow& flow, Stream& fresh);

 private:
  // Largest message that is copied together with its header.
  static constexpr std::size_t kMostCopied = Stream::kMaxCopiedBytes - kChunkRecordBytes;

  enum class State : std::uint8_t { kOpening, kReady, kEnded };

  bool is_ended() const { return state_ == State::kEnded; }

  // send_dispatch.cc
  void pump(TimePoint now);
  bool dispatch_next(TimePoint now);
  struct Choice {
    SendFlow* flow = nullptr;  // Null: none has room.
    std::size_t room_bytes = 0;
    std::size_t flows_up = 0;
  };
  Choice flow_with_most_room(std::uint64_t message_bytes);
  // The next chunk to send: lost units first, else the first message whose lane has credit.
  struct Next {
    SendMessage* message = nullptr;  // Null: none.
    SendMessage::Piece piece;
    bool eager = false;
  };
  Next next_lost();
  Next next_new();
  void write_chunk(SendFlow& flow, const Next& next);
  bool is_held_by_peer(const SendMessage& message) const;
  bool is_in_doubt(const SendMessage& message) const;
  bool is_referred_to(const SendMessage& message) const;
  bool is_receiver_silent(const SendLane& lane) const;
  // Whether the receiver's silence can be known at all: one lane, one flow.
  bool may_be_silent() const { return lanes_.size() == 1 && !wants_extra_flows_; }
  bool wants_receipt(const SendMessage& m) const;
  bool outlives_process(const SendMessage& message);
  void complete_messages();
  void ask();
  void expect_news();
  void ask_if_it_helps();
  void resolve(SendFlow& flow, SendMessage& message, const ChunkMap* held);
  void advance(TimePoint now);

  // send_watch.cc
  void watch_from(TimePoint now);
  void watch(TimePoint now);
  bool watch_flow(TimePoint now, SendFlow& flow, Duration& silent, Duration& shut, bool& all_acked);
  bool is_stalled(TimePoint now, SendFlow& flow);
  bool is_dead(TimePoint now, SendFlow& flow, const StreamStall& stall);
  FlowSet doubtful_flows(TimePoint now);
  void compare_paths(TimePoint now);
  void pause_moves(TimePoint now);
  bool awaits_receipt();
  bool bear_with_greeting(TimePoint now, SendFlow& flow);
  void note_trouble(TimePoint now, Duration silent, Duration standing);
  void say_trouble(TimePoint now, PeerTrouble trouble, Duration lasted);
  void end_trouble(TimePoint now);

  // send_session.cc
  bool has_outstanding() const { return !unsent_.empty() || !sent_.empty(); }
  bool has_lent();
  bool refers_to_messages(const SendFlow& flow);
  bool say_why(const Refusal& refusal);
  void say_by_hello(TimePoint now);
  template <class Visit>
  void for_each_outstanding(Visit visit) {
    for (SendMessage& message : sent_) visit(message);
    for (SendMessage& message : unsent_) visit(message);
  }
  Duration attempt_timeout(const SendFlow& flow) const;
  void start_extra_flows(TimePoint now);
  void doubt_flow(const SendFlow& flow);
  void on_other_queue(TimePoint now, SendFlow& flow);
  bool has_served(TimePoint now, const SendFlow& flow) const;
  bool is_payload_stuck(const SendFlow& flow) const;
  std::uint32_t segment_bytes() const;
  void forget_messages();  // Their records are the owner's again.
  void finish_closing();
  void release_kept();
  void end_closed();
  void fail_without_lane();
  void fail(Error error, const FailureDetail& detail = {});

  const SessionSettings settings_;
  const ClusterKey key_;
  const Cookie cookie_;
  const std::uint64_t session_id_;
  Dialer& dialer_;
  SendOwner& owner_;

  State state_ = State::kOpening;
  bool was_accepted_ = false;
  bool ack_is_delivery_ = false;  // On both sides.
  bool wants_extra_flows_ = false;
  bool peer_closed_ = false;  // The receiver takes no more, and has everything so far.
  bool peer_process_ended_ = false;
  bool is_closing_ = false;
  bool is_leaving_ = false;   // The receiver is told that nothing follows.
  bool is_aborting_ = false;  // The receiver is told that messages are missing.
  bool said_bye_ = false;     // On at least one flow, which suffices.
  bool has_asked_ = false;    // And has received no credit since.
  // Number in the first lane: the requested records have arrived once this message is received.
  std::uint64_t silent_after_ = 0;
  std::uint8_t flows_granted_ = 1;
  FailureDetail failure_;
  HostName peer_host_;

  KeptMessages kept_;
  // In the order of posting: messages not sent completely, and sent messages that are not done;
  // lent or kept.
  IntrusiveList<SendMessage> unsent_;
  IntrusiveList<SendMessage> sent_;
  std::uint64_t posted_ = 0;  // Messages, of all lanes.
  std::uint32_t messages_with_lost_units_ = 0;
  Lanes<SendLane> lanes_;
  std::size_t used_lanes_ = 0;  // Lanes that have had a message.
  SenderCredit credit_;
  CreditWait credit_wait_;
  std::array<SendFlow, kMaxFlows> flows_;

  // See send_watch.cc.
  TimePoint watch_at_ = kNever;
  std::uint64_t watched_received_ = 0;
  TimePoint moved_at_{};  // Last check that found progress of messages or bytes.
  std::optional<PeerTrouble> trouble_;
  TimePoint trouble_since_{};
  PathScout scout_{*this};
  TimePoint next_move_ = TimePoint::min();  // Earliest time for a flow to leave a bad path.
  Duration move_pause_{};                   // After the last one.
  std::uint8_t segment_limit_ = 0;  // Index of the segment limit in use; they are tried one after
                                    // the other.
};

}  // namespace ztcp::msg
