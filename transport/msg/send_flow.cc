// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/send_flow.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transport/msg/handshake.h"
#include "transport/msg/send_session.h"

namespace ztcp::msg {

bool SendFlow::write(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
  if (!stream_->write(copied, referenced)) {
    is_blocked_ = true;
    return false;
  }
  written_bytes_ += copied.size();
  for (const Fragment& fragment : referenced) written_bytes_ += fragment.size_bytes;
  return true;
}

void SendFlow::set_wake_at(TimePoint when) {
  wake_at_ = when;
  session_->wake_at(when);
}

void SendFlow::wait_until(TimePoint when) {
  state_ = State::kWaiting;
  set_wake_at(when);
}

void SendFlow::begin_watch(TimePoint now) {
  is_tolerated_ = false;
  watched_acked_ = acked_bytes_;
  watched_written_ = written_bytes_;
  moved_at_ = stalled_since_ = now;
}

// If the kernel has taken all bytes, unacknowledged ones are not visible here; its own count of
// timeouts shows them.
void SendFlow::watch(TimePoint now, bool ack_is_delivery) {
  const bool has_moved = acked_bytes_ != watched_acked_;
  const bool nothing_waited = ack_is_delivery && watched_acked_ == watched_written_;
  if (has_moved) moved_at_ = now;
  if (has_moved || nothing_waited) stalled_since_ = now;
  watched_acked_ = acked_bytes_;
  watched_written_ = written_bytes_;
}

void SendFlow::note_end(const Stream& stream) {
  const StreamHealth health = stream.health();
  delivered_bytes_ = std::max(delivered_bytes_, health.delivered_bytes);
  health_.add_later(health);
}

void SendFlow::begin(TimePoint now, std::optional<Duration> attempt_timeout) {
  ++epoch_;
  written_bytes_ = 0;
  acked_bytes_ = 0;
  delivered_bytes_ = 0;
  is_blocked_ = false;
  has_peer_finished_ = false;
  is_challenged_ = false;
  reader_ = RecordReader();
  state_ = State::kConnecting;
  attempt_timeout_ = attempt_timeout;
  set_wake_at(attempt_timeout ? now + *attempt_timeout : kNever);
}

Status SendFlow::dial(TimePoint now, Dialer& dialer, std::optional<Duration> attempt_timeout) {
  begin(now, attempt_timeout);
  auto stream =
      segment_bytes != 0 ? dialer.dial_small(now, *this, segment_bytes) : dialer.dial(now, *this);
  if (!stream) return tl::unexpected<Error>(stream.error());
  stream_ = *stream;
  return {};
}

void SendFlow::adopt(TimePoint now, Stream& stream, Duration attempt_timeout) {
  begin(now, attempt_timeout);
  stream.hand_over(*this);
  on_open(now, stream);
}

void SendFlow::drop(State state) {
  if (Stream* stream = std::exchange(stream_, nullptr)) {
    note_end(*stream);
    stream->abort();
  }
  state_ = state;
  wake_at_ = kNever;
}

void SendFlow::close() {
  if (Stream* stream = std::exchange(stream_, nullptr)) {
    note_end(*stream);
    stream->close();
  }
  state_ = State::kEnded;
  wake_at_ = kNever;
}

void SendFlow::on_open(TimePoint now, Stream& stream) {
  stream_ = &stream;
  hello_ = session_->make_hello(index_, epoch_);
  std::array<std::byte, kPreambleBytes + kHeaderBytes + Hello::kBody> out;
  const std::size_t preamble = encode_preamble(kWireVersion, out);
  encode(hello_, std::span(out).subspan(preamble));
  state_ = State::kGreeting;
  const Duration timeout = session_->settings().handshake_timeout;
  set_wake_at(now + std::min(attempt_timeout_.value_or(timeout), timeout));
  if (!write(out))
    session_->on_flow_lost(now, *this, Error{Errc::kOutOfMemory, 0, "Stream::write of hello"});
}

void SendFlow::on_bytes(TimePoint now, std::span<const std::byte> bytes) {
  while (stream_ != nullptr) {
    switch (reader_.next(bytes)) {
      case RecordReader::Step::kNeedMore:
        return;
      case RecordReader::Step::kPreamble:
        // Another version refuses by a record whose form never changes; wait for it.
        break;
      case RecordReader::Step::kRecord:
        if (reader_.version() != kWireVersion && reader_.header().type != RecordType::kRefusal)
          return version_error(now);
        if (!on_record(now)) return;
        break;
      case RecordReader::Step::kBad:
        if (reader_.version() != kWireVersion) return version_error(now);
        [[fallthrough]];
      case RecordReader::Step::kPayload:
        return protocol_error(now, "record from the receiver");
      case RecordReader::Step::kBadMagic:
        return protocol_error(now, "magic: another service answers at the peer's port");
    }
  }
}

bool SendFlow::on_record(TimePoint now) {
  const auto body = reader_.body();
  switch (reader_.header().type) {
    case RecordType::kCredit:
      if (const auto credit = decode_credit(body); credit && state_ >= State::kResuming) {
        session_->on_credit(now, *credit);
        return stream_ != nullptr;
      }
      break;
    case RecordType::kReady:
      if (const auto ready = decode_ready(body); ready && state_ == State::kResuming) {
        state_ = State::kUp;
        was_up_ = true;
        wake_at_ = kNever;
        session_->on_flow_up(now, *this, *ready);
        return stream_ != nullptr;
      }
      break;
    case RecordType::kChallenge:
      return on_challenge(now);
    case RecordType::kAccept:
      return on_accept(now);
    case RecordType::kMap:
      if (const auto map = decode_map(reader_.header(), body); map && state_ == State::kResuming) {
        if (session_->on_map(*this, *map)) return true;
      }
      break;
    case RecordType::kBye:
      if (const auto bye = decode_bye(reader_.header(), body); bye && state_ == State::kUp) {
        session_->on_bye(now, *bye);
        return stream_ != nullptr;
      }
      break;
    case RecordType::kRefusal:
      if (const auto refusal = decode_refusal(body)) {
        session_->on_refusal(now, *this, *refusal);
        return false;
      }
      break;
    case RecordType::kHello:
    case RecordType::kProof:
    case RecordType::kChunk:
    case RecordType::kAsk:
      break;
  }
  protocol_error(now, "record from the receiver");
  return false;
}

bool SendFlow::on_challenge(TimePoint now) {
  const auto challenge = decode_challenge(reader_.body());
  if (!challenge || state_ != State::kGreeting || is_challenged_ || !is_set(session_->key())) {
    protocol_error(now, "challenge");
    return false;
  }
  const Digest expected = receiver_mac(session_->key(), hello_, challenge->nonce);
  if (!equal_in_constant_time(expected, challenge->mac)) {
    session_->on_refused_here(now, *this, FailureDetail{Reason::kKeyMismatch});
    return false;
  }
  is_challenged_ = true;
  RecordBuffer out;
  const Proof proof{sender_mac(session_->key(), hello_, challenge->nonce)};
  if (!write(std::span(out).first(encode(proof, out)))) {
    session_->on_flow_lost(now, *this, Error{Errc::kOutOfMemory, 0, "Stream::write of proof"});
    return false;
  }
  return true;
}

bool SendFlow::on_accept(TimePoint now) {
  const auto accept = decode_accept(reader_.header(), reader_.body());
  if (!accept || state_ != State::kGreeting || accept->session != hello_.session) {
    protocol_error(now, "accept");
    return false;
  }
  if (is_set(session_->key()) && !is_challenged_) {
    session_->on_refused_here(now, *this, FailureDetail{Reason::kKeyMissing});
    return false;
  }
  if (!accept->ack_is_delivery) stream_->expect_late_acks();
  session_->on_accept(*accept);
  state_ = State::kResuming;
  return true;
}

void SendFlow::protocol_error(TimePoint now, const char* where) {
  session_->on_protocol_error(now, *this, where);
}

void SendFlow::version_error(TimePoint now) {
  session_->on_refused_here(
      now, *this,
      FailureDetail{Reason::kVersion, /*from_peer=*/false, kWireVersion, reader_.version()});
}

void SendFlow::on_acked(TimePoint now, std::uint64_t total_bytes) {
  if (stream_ == nullptr) return;
  acked_bytes_ = total_bytes;
  is_blocked_ = false;
  session_->on_flow_acked(now, *this);
}

void SendFlow::on_delivered(TimePoint, std::uint64_t total_bytes) {
  if (stream_ == nullptr || total_bytes <= delivered_bytes_) return;
  delivered_bytes_ = total_bytes;
  session_->on_flow_delivered();
}

void SendFlow::on_closed(TimePoint now) { session_->on_flow_closed(now, *this); }

void SendFlow::on_failed(TimePoint now, Error error) {
  if (const Stream* stream = std::exchange(stream_, nullptr)) note_end(*stream);
  session_->on_flow_lost(now, *this, error);
}

}  // namespace ztcp::msg
