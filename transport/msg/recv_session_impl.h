// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The receiving session behind session.h. Two files: recv_session.cc (life: flows joining and
// leaving, credit, closing, failing) and recv_sink.cc (where bytes go, and when a message is done).
// Made by the acceptor, owned by whoever the listener handed it to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/msg/bounce.h"
#include "transport/msg/recv_flow.h"
#include "transport/msg/recv_message.h"

namespace ztcp::msg {

class RecvSession::Impl {
 public:
  Impl(Acceptor::Impl& acceptor, const SessionSettings& settings, const Hello& hello,
       std::uint32_t allowance_bytes, Endpoint remote);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // --- The owner's calls ---
  void set_owner(SessionOwner& owner);
  bool can_post() const { return posted_ - received_ < kMaxOutstanding; }
  bool post(TimePoint now, std::span<std::byte> bytes, std::uint32_t token);
  void close();
  void abort();
  void leave(TimePoint now);
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;
  bool needs_peer() const { return !has_bye_; }
  Endpoint remote() const { return remote_; }
  std::uint32_t allowance_bytes() const { return bounce_.allowance_bytes(); }
  std::uint64_t unposted_bytes() const { return bounce_.reserved_bytes(); }
  const FailureDetail& failure_detail() const { return failure_; }

  // --- The acceptor's ---
  std::uint64_t id() const { return id_; }
  const Cookie& cookie() const { return cookie_; }
  bool is_running() const { return state_ == State::kRunning; }
  std::uint8_t flows_granted() const { return flows_granted_; }
  std::uint32_t epoch(std::size_t flow) const { return epochs_[flow]; }
  // Takes a flow that has shaken hands. An older stream of the same index ends first.
  void attach(TimePoint now, std::unique_ptr<RecvFlow> flow);
  // The sender said so, in a new hello.
  void on_process_ended(TimePoint now);
  // Sends the credit it owes.
  void flush_owed();
  // The acceptor is going: nothing of it may be used any more.
  void orphan();

  // --- The flows' ---
  void on_chunk(TimePoint now, RecvFlow& flow, const Chunk& chunk);
  void on_payload(TimePoint now, RecvFlow& flow, std::span<const std::byte> bytes);
  void on_bye(TimePoint now, RecvFlow& flow, const Bye& bye);
  void on_refusal(TimePoint now, const Refusal& refusal);
  void on_writable(RecvFlow& flow);
  void on_flow_closed(TimePoint now, RecvFlow& flow);
  void on_flow_lost(TimePoint now, RecvFlow& flow, Error error);
  void on_protocol_error(TimePoint now, const char* where);

 private:
  enum class State : std::uint8_t { kRunning, kClosing, kFailed, kEnded };

  RecvMessage& message(std::uint64_t number) { return messages_[number % kMaxOutstanding]; }
  bool is_finished(std::uint64_t number) { return number < received_ || message(number).is_done; }

  // recv_sink.cc
  void take(TimePoint now, std::uint64_t number, std::span<std::byte> bytes, std::uint32_t token);
  bool begin(TimePoint now, RecvMessage& m, const Chunk& chunk);
  bool fits(TimePoint now, const RecvMessage& m);
  bool sink(TimePoint now, RecvMessage& m, RecvFlow& flow, std::uint64_t from,
            std::span<const std::byte> bytes);
  void take_from_bounce(RecvMessage& m, std::uint64_t number);
  void drop_chunk(RecvFlow& flow);
  void finish(std::uint64_t number);

  // recv_session.cc
  Credit credit() const { return {posted_, released_, received_}; }
  bool has_credit_to_tell() const { return credit() != told_; }
  void owe_credit();
  void flush();
  void send_maps(RecvFlow& flow);
  void drop_flow(RecvFlow& flow);
  bool has_living_flow() const;
  void finish_closing();
  void check_after_bye(TimePoint now);
  FailureDetail why_sender_left() const {
    return {sender_process_ended_ ? Reason::kProcessEnded : Reason::kNone, /*from_peer=*/true};
  }
  void fail(TimePoint now, Error error, const FailureDetail& detail = {});

  Acceptor::Impl* acceptor_;
  const SessionSettings settings_;
  const Cookie cookie_;
  const std::uint64_t id_;
  const Endpoint remote_;
  const std::uint8_t flows_granted_;
  SessionOwner* owner_ = nullptr;

  State state_ = State::kRunning;
  bool owes_credit_ = false;  // In the acceptor's list.
  bool has_bye_ = false;
  bool sender_process_ended_ = false;  // It said so.
  std::uint64_t bye_messages_ = 0;     // What the sender's bye said.
  // Set while no flow is left: then the session fails with resume_error_.
  TimePoint resume_deadline_ = kNever;
  Error resume_error_;
  // A failure the owner has not been told: it was not set yet.
  bool has_untold_failure_ = false;
  Error untold_failure_;
  FailureDetail failure_;

  // received_ <= posted_ <= received_ + 32; chunks of [received_, received_ + 32) are taken.
  std::uint64_t posted_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t released_ = 0;
  Credit told_;
  RecvFlow* heard_last_ = nullptr;  // Credit goes there: it is alive if any is.
  std::array<std::uint32_t, kMaxFlows> epochs_{};
  std::array<std::unique_ptr<RecvFlow>, kMaxFlows> flows_;
  Bounce bounce_;
  std::array<RecvMessage, kMaxOutstanding> messages_;
};

}  // namespace ztcp::msg
