// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending session behind session.h. Three files: send_session.cc (life: dialling, closing,
// failing), send_dispatch.cc (which bytes go out next, on which flow, and when a message is done),
// send_flow.cc (one flow's handshake and records).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/msg/credit.h"
#include "transport/msg/send_flow.h"
#include "transport/msg/send_message.h"

namespace ztcp::msg {

class SendSession::Impl {
 public:
  Impl(const SessionSettings& settings, const ClusterKey& key, const Cookie& cookie,
       std::uint64_t session_id, Dialer& dialer, SessionOwner& owner);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool can_post() const { return next_ - first_ < kMaxOutstanding; }
  bool post(TimePoint now, std::span<const std::byte> bytes, std::uint32_t memory_key,
            std::uint32_t token);
  void close();
  void abort();
  void leave(TimePoint now);
  bool is_leaving() const { return is_leaving_ && !is_ended(); }
  bool needs_peer() const { return !peer_closed_; }
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;
  const FailureDetail& failure_detail() const { return failure_; }

  // --- What flows ask and tell ---
  const SessionSettings& settings() const { return settings_; }
  const ClusterKey& key() const { return key_; }
  Hello make_hello(std::uint8_t flow, std::uint32_t epoch) const;
  void wake_at(TimePoint when) { dialer_.wake_at(when); }

  void on_accept(const Accept& accept);
  [[nodiscard]] bool on_map(SendFlow& flow, const Map& map);
  void on_flow_up(TimePoint now, SendFlow& flow, const Credit& credit);
  void on_credit(const Credit& credit);
  void on_bye(const Bye& bye);
  void on_flow_acked(SendFlow& flow);
  void on_flow_closed(TimePoint now, SendFlow& flow);
  // The stream is gone, or of no use any more.
  void on_flow_lost(TimePoint now, SendFlow& flow, Error error);
  void on_refusal(TimePoint now, SendFlow& flow, const Refusal& refusal);
  void on_refused_here(TimePoint now, SendFlow& flow, const FailureDetail& detail);
  void on_protocol_error(TimePoint now, SendFlow& flow, const char* where);

 private:
  enum class State : std::uint8_t { kOpening, kReady, kEnded };

  SendMessage& message(std::uint64_t number) { return messages_[number % kMaxOutstanding]; }
  bool is_ended() const { return state_ == State::kEnded; }

  // send_dispatch.cc
  void pump();
  bool dispatch_next();
  struct Choice {
    SendFlow* flow = nullptr;  // None has room.
    std::size_t room_bytes = 0;
    std::size_t flows_up = 0;
  };
  Choice flow_with_most_room();
  bool write_chunk(SendFlow& flow, std::uint64_t number, SendMessage::Piece piece, bool eager);
  bool is_held_by_peer(std::uint64_t number);
  void complete_messages();
  void advance();

  // send_session.cc
  void start_extra_flows(TimePoint now);
  void doubt_flow(const SendFlow& flow);
  bool has_served(TimePoint now, const SendFlow& flow) const;
  void finish_closing();
  void end_closed();
  void fail(Error error, const FailureDetail& detail = {});

  const SessionSettings settings_;
  const ClusterKey key_;
  const Cookie cookie_;
  const std::uint64_t session_id_;
  Dialer& dialer_;
  SessionOwner& owner_;

  State state_ = State::kOpening;
  bool was_accepted_ = false;
  bool ack_is_delivery_ = false;  // On both sides.
  bool wants_extra_flows_ = false;
  bool peer_closed_ = false;  // The receiver takes no more; everything so far it has.
  bool peer_process_ended_ = false;
  bool is_closing_ = false;
  bool is_leaving_ = false;
  bool said_bye_ = false;  // On a flow at least, which suffices.
  std::uint8_t flows_granted_ = 1;
  FailureDetail failure_;

  // Messages are numbered from 0. first_ <= unsent_ <= next_ <= first_ + 32.
  std::uint64_t first_ = 0;   // The oldest that is not done.
  std::uint64_t unsent_ = 0;  // The oldest that is not handed out in whole.
  std::uint64_t next_ = 0;    // The next to be posted.
  std::uint32_t messages_with_lost_units_ = 0;
  SenderCredit credit_;
  std::array<SendFlow, kMaxFlows> flows_;
  std::array<SendMessage, kMaxOutstanding> messages_;
};

}  // namespace ztcp::msg
