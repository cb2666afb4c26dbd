// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One incoming stream: the acceptor's during the handshake, then a flow of a RecvSession.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/address.h"
#include "transport/msg/copy_jobs.h"
#include "transport/msg/record_reader.h"
#include "transport/msg/rx_places.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class Acceptor;
class RecvSession;
struct RecvLane;

class RecvFlow final : public StreamEvents {
 public:
  enum class State : std::uint8_t {
    kHello,    // No hello yet.
    kProof,    // Challenged.
    kMapping,  // accept was sent; maps and credit, then ready follow.
    kUp,
    kDraining,  // Refused: the peer's bytes are dropped until it has read the refusal.
    kGone,
  };

  // Time in which a refused sender may read the refusal.
  static constexpr Duration kLinger = std::chrono::seconds(2);

  // Destination of the chunk being read.
  struct Cursor {
    RecvLane* lane = nullptr;
    std::uint64_t message = 0;
    std::uint64_t position = 0;        // The next byte's offset in the message.
    std::uint64_t reserved_bytes = 0;  // In Bounce, for units not held yet.
    bool eager = false;
    bool is_lent = false;   // See RecvSession::lend_place().
    std::uint64_t end = 0;  // End of the chunk, in the message.
    CopyTrack track;
  };

  RecvFlow(Acceptor& acceptor, Stream& stream, Endpoint remote, TimePoint deadline,
           bool is_to_spare, std::optional<std::uint32_t> rx_queue = std::nullopt)
      : acceptor_(&acceptor),
        stream_(&stream),
        remote_(remote),
        is_to_spare_(is_to_spare),
        rx_queue_(rx_queue),
        deadline_(deadline) {}

  State state() const { return state_; }
  bool is_up() const { return state_ == State::kUp; }
  bool is_alive() const { return stream_ != nullptr; }
  void set_dscp(std::uint8_t dscp) {
    if (stream_ != nullptr) stream_->set_dscp(dscp);
  }
  const Stream* stream() const { return stream_; }
  const Endpoint& remote() const { return remote_; }
  // When it was accepted, streams were left beyond the first of each session.
  bool is_to_spare() const { return is_to_spare_; }
  // The NIC's receive queue of the stream, if known.
  std::optional<std::uint32_t> rx_queue() const { return rx_queue_; }
  TimePoint deadline() const { return deadline_; }
  const Hello& hello() const { return hello_; }
  std::size_t index() const { return hello_.flow; }

  // Writes a record, after the preamble if it is the first. False: no room now.
  template <class Record>
  bool send(const Record& record) {
    std::array<std::byte, kPreambleBytes + kMaxRecordBytes> out;
    std::size_t size = said_preamble_ ? 0 : encode_preamble(kWireVersion, out);
    size += encode(record, std::span(out).subspan(size));
    if (stream_ == nullptr || !stream_->write(std::span(out).first(size), {})) return false;
    said_preamble_ = true;
    return true;
  }

  // The same for bytes, once the preamble has gone out.
  bool write(std::span<const std::byte> bytes) {
    return stream_ != nullptr && stream_->write(bytes, {});
  }

  // Detaches it from its session; only its acceptor, which frees it, still uses it.
  void leave_session() { session_ = nullptr; }
  void join(RecvSession& session) {
    session_ = &session;
    state_ = State::kMapping;
    deadline_ = kNever;
    if (!hello_.ack_is_delivery) stream_->expect_late_acks();
  }
  void set_up() { state_ = State::kUp; }
  void drain(TimePoint deadline) {
    state_ = State::kDraining;
    deadline_ = deadline;
  }
  StreamStall stall(TimePoint now) const {
    return stream_ != nullptr ? stream_->stall(now) : StreamStall{};
  }
  // See Stream.
  void settle_place() {
    if (stream_ != nullptr) stream_->settle_place();
  }
  void abort();  // RST, if the stream still exists.
  void close();  // FIN.

  // The session's: the chunk being read. While kMapping: the number of lanes told completely, and
  // the next message to tell of the lane after them.
  Cursor cursor;
  bool is_stuck = false;  // Bytes written here do not arrive.
  std::size_t lanes_told = 0;
  std::uint64_t next_map = 0;
  // The acceptor's: the nonce of the challenge; and the flow's share of the receive queue, held
  // while its stream exists.
  Nonce challenge{};
  RxPlace rx_place;

  void on_open(TimePoint, Stream&) override {}  // Accepted streams are open.
  void on_bytes(TimePoint now, std::span<const std::byte> bytes) override;
  Place place() override;
  void on_placed(TimePoint now, std::size_t bytes) override;
  bool lend_place() override;
  void on_acked(TimePoint now, std::uint64_t total_bytes) override;
  void on_closed(TimePoint now) override;
  void on_failed(TimePoint now, Error error) override;

 private:
  void on_record(TimePoint now);
  void on_bad(TimePoint now);
  void note_health();

  friend class Acceptor;  // Sets hello_ and moves kHello to kProof.
  Acceptor* acceptor_;
  RecvSession* session_ = nullptr;
  Stream* stream_;
  Endpoint remote_;
  State state_ = State::kHello;
  bool said_preamble_ = false;
  bool is_to_spare_;
  std::optional<std::uint32_t> rx_queue_;
  TimePoint deadline_;
  Hello hello_;
  RecordReader reader_;
};

}  // namespace ztcp::msg
