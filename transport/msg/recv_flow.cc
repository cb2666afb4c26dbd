// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/recv_flow.h"

#include <utility>

#include "transport/msg/acceptor.h"

namespace ztcp::msg {

void RecvFlow::abort() {
  note_health();
  if (Stream* stream = std::exchange(stream_, nullptr)) stream->abort();
  rx_place.release();
  state_ = State::kGone;
  deadline_ = kNever;
}

void RecvFlow::note_health() {
  if (session_ != nullptr && stream_ != nullptr) session_->note_health(stream_->health());
}

void RecvFlow::close() {
  if (Stream* stream = std::exchange(stream_, nullptr)) stream->close();
  rx_place.release();
  state_ = State::kGone;
  deadline_ = kNever;
}

void RecvFlow::on_bytes(TimePoint now, std::span<const std::byte> bytes) {
  while (stream_ != nullptr && state_ != State::kDraining) {
    switch (reader_.next(bytes)) {
      case RecordReader::Step::kNeedMore:
        return;
      case RecordReader::Step::kPayload:
        session_->on_payload(now, *this, reader_.payload());
        break;
      case RecordReader::Step::kRecord:
        on_record(now);
        break;
      case RecordReader::Step::kPreamble:
        if (reader_.version() != kWireVersion) acceptor_->on_version(now, *this, reader_.version());
        break;
      case RecordReader::Step::kBadMagic:
      case RecordReader::Step::kBad:
        on_bad(now);
        break;
    }
  }
}

Place RecvFlow::place() {
  if (!is_up() || stream_ == nullptr || reader_.payload_left() == 0) return {};
  return session_->place(*this, reader_.payload_left());
}

// The session may have ended meanwhile.
void RecvFlow::on_placed(TimePoint now, std::size_t bytes) {
  reader_.skip(bytes);
  if (session_ != nullptr) session_->on_placed(now, *this, bytes);
}

bool RecvFlow::lend_place() { return session_->lend_place(*this); }

void RecvFlow::on_record(TimePoint now) {
  const auto body = reader_.body();
  switch (reader_.header().type) {
    case RecordType::kChunk:
      if (const auto chunk = decode_chunk(reader_.header(), body); chunk && is_up())
        return session_->on_chunk(now, *this, *chunk);
      break;
    case RecordType::kAsk:
      if (is_up()) return session_->on_ask();
      break;
    case RecordType::kHello:
      if (const auto hello = decode_hello(reader_.header(), body); hello && state_ == State::kHello)
        return acceptor_->on_hello(now, *this, *hello);
      break;
    case RecordType::kProof:
      if (const auto proof = decode_proof(body); proof && state_ == State::kProof)
        return acceptor_->on_proof(now, *this, *proof);
      break;
    case RecordType::kBye:
      if (const auto bye = decode_bye(reader_.header(), body); bye && is_up())
        return session_->on_bye(now, *this, *bye);
      break;
    case RecordType::kRefusal:
      if (const auto refusal = decode_refusal(body); refusal && session_ != nullptr)
        return session_->on_refusal(now, *refusal);
      break;
    case RecordType::kChallenge:
    case RecordType::kAccept:
    case RecordType::kMap:
    case RecordType::kCredit:
    case RecordType::kReady:
      break;
  }
  on_bad(now);
}

void RecvFlow::on_bad(TimePoint now) {
  if (session_ != nullptr)
    session_->on_protocol_error(now, "record from the sender");
  else
    acceptor_->on_stray(*this);
}

void RecvFlow::on_acked(TimePoint, std::uint64_t) {
  if (session_ != nullptr && stream_ != nullptr) session_->on_writable(*this);
}

void RecvFlow::on_closed(TimePoint now) {
  if (session_ != nullptr) return session_->on_flow_closed(now, *this);
  abort();
  acceptor_->on_pending_gone(*this);
}

void RecvFlow::on_failed(TimePoint now, Error error) {
  note_health();
  stream_ = nullptr;
  rx_place.release();
  if (session_ != nullptr) return session_->on_flow_lost(now, *this, error);
  acceptor_->on_pending_gone(*this);
}

}  // namespace ztcp::msg
