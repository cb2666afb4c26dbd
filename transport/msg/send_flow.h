// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One flow of a SendSession: its stream, its handshake, and the records it reads. Decides nothing
// about messages; its session dials a dead flow again with the next epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transport/msg/nobody_listens.h"
#include "transport/msg/path_quality.h"
#include "transport/msg/record_reader.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class SendSession;

class SendFlow final : public StreamEvents {
 public:
  enum class State : std::uint8_t {
    kIdle,        // Not needed yet.
    kWaiting,     // To be dialled at wake_at().
    kConnecting,  // The stream is being opened.
    kGreeting,    // hello was sent.
    kResuming,    // accept has arrived; maps and credit, then ready follow.
    kUp,
    kGone,   // Given up.
    kEnded,  // Closed in order.
  };

  void bind(SendSession& session, std::size_t index) {
    session_ = &session;
    index_ = static_cast<std::uint8_t>(index);
  }

  std::size_t index() const { return index_; }
  State state() const { return state_; }
  bool is_up() const { return state_ == State::kUp; }
  bool is_open() const { return state_ >= State::kGreeting && state_ <= State::kUp; }
  bool is_opening() const { return state_ >= State::kWaiting && state_ <= State::kResuming; }
  bool was_up() const { return was_up_; }
  std::uint64_t acked_bytes() const { return acked_bytes_; }
  std::uint64_t written_bytes() const { return written_bytes_; }
  // Bytes that the peer's TCP has acknowledged, as of the last ask_delivery(); after the stream has
  // ended, all that it had acknowledged.
  std::uint64_t delivered_bytes() const { return delivered_bytes_; }
  void ask_delivery() {
    if (stream_ != nullptr) stream_->ask_delivery();
  }
  TimePoint wake_at() const { return wake_at_; }
  // The peer's FIN has arrived: the flow ends once it is drained.
  void set_peer_finished() { has_peer_finished_ = true; }
  bool has_peer_finished() const { return has_peer_finished_; }
  // Sums over the streams that have ended.
  const StreamHealth& health() const { return health_; }
  bool is_drained() const { return acked_bytes_ == written_bytes_; }
  StreamStall stall(TimePoint now) const {
    return stream_ != nullptr ? stream_->stall(now) : StreamStall{};
  }
  // Zero: the window is open again.
  void tolerate_shut_window(Duration lasted) {
    if (lasted == Duration::zero() && !is_tolerated_) return;
    is_tolerated_ = lasted != Duration::zero();
    stream_->tolerate_shut_window(lasted);
  }
  void ask_peer() {
    if (stream_ != nullptr) stream_->ask_peer();
  }
  StreamHealth path_health() const {
    return stream_ != nullptr ? stream_->health() : StreamHealth{};
  }
  Duration round_trip() const { return path_health().srtt; }
  // The peer's process may take longer for its next record.
  void wait_longer(TimePoint until) { set_wake_at(until); }

  // --- Progress, checked now and then
  void begin_watch(TimePoint now);
  void watch(TimePoint now, bool ack_is_delivery);
  // Last check by which bytes had been acknowledged since the check before.
  TimePoint moved_at() const { return moved_at_; }
  // Nothing that waits has been acknowledged since then.
  TimePoint stalled_since() const { return stalled_since_; }

  // Room for chunks now; 0 while the stream's rings are full.
  const Stream* stream() const { return stream_; }
  std::size_t room() const { return is_up() && !is_blocked_ ? stream_->room() : 0; }
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced = {});

  void wait_until(TimePoint when);
  // Dials. `attempt_timeout` limits the connection, and then the handshake; none: TCP limits the
  // first, the settings limit the other.
  Status dial(TimePoint now, Dialer& dialer, std::optional<Duration> attempt_timeout);
  // The same with a stream that is open already.
  void adopt(TimePoint now, Stream& stream, Duration attempt_timeout);
  // Ends the stream, with RST if it still exists.
  void drop(State state);
  void close();  // FIN.

  // Kept by the session: when the flow came up and the bytes written by then; whether a message of
  // it has arrived since; since when it has been lost, until when it is redialled, redials so far,
  // and deaths in a row without having served.
  TimePoint up_at{};
  std::uint16_t port = 0;  // Ours, when it was last up; 0: not known.
  std::uint64_t written_when_up = 0;
  bool has_delivered = false;
  bool is_given_up = false;  // By the session, before its TCP gave up.
  // When its TCP was first seen to have timed out, since it was last acknowledged; kNever: it was
  // not.
  TimePoint doubted_at = kNever;
  TimePoint asked_at{};  // When an acknowledgement was requested because another flow stalled.
  std::uint64_t acked_when_asked = 0;
  TimePoint lost_since{};
  TimePoint redial_until{};
  std::uint32_t redials = 0;
  std::uint32_t greeting_waits = 0;  // Waits for the answer of a process that stands still.
  std::uint32_t segment_bytes = 0;   // Segment limit of the last dial; zero: none.
  NobodyListens nobody;              // Refused redials at the peer's port.
  std::uint32_t early_deaths = 0;
  PathQuality quality;       // The path in use, or the one that it leaves.
  bool leaves_path = false;  // It is dialled again because that path was worse than others.
  // Dials that came to another queue of the peer's NIC than the session is on.
  std::uint32_t other_queues = 0;

  void on_open(TimePoint now, Stream& stream) override;
  void on_bytes(TimePoint now, std::span<const std::byte> bytes) override;
  void on_acked(TimePoint now, std::uint64_t total_bytes) override;
  void on_delivered(TimePoint now, std::uint64_t total_bytes) override;
  void on_closed(TimePoint now) override;
  void on_failed(TimePoint now, Error error) override;

 private:
  void set_wake_at(TimePoint when);
  void begin(TimePoint now, std::optional<Duration> attempt_timeout);
  void note_end(const Stream& stream);
  // Returns false when the stream must not be read any more.
  bool on_record(TimePoint now);
  bool on_challenge(TimePoint now);
  bool on_accept(TimePoint now);
  void protocol_error(TimePoint now, const char* where);
  void version_error(TimePoint now);

  SendSession* session_ = nullptr;
  Stream* stream_ = nullptr;
  State state_ = State::kIdle;
  std::uint8_t index_ = 0;
  bool was_up_ = false;
  bool is_tolerated_ = false;  // tolerate_shut_window() is in effect.
  bool is_blocked_ = false;    // write() returned false; on_acked() clears it.
  bool has_peer_finished_ = false;
  bool is_challenged_ = false;  // The peer has proven that it holds the key.
  std::uint32_t epoch_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t acked_bytes_ = 0;
  std::uint64_t delivered_bytes_ = 0;
  std::uint64_t watched_acked_ = 0;  // At the last check.
  std::uint64_t watched_written_ = 0;
  TimePoint moved_at_{};
  TimePoint stalled_since_{};
  TimePoint wake_at_ = kNever;
  StreamHealth health_;
  std::optional<Duration> attempt_timeout_;
  Hello hello_;
  RecordReader reader_;
};

}  // namespace ztcp::msg
