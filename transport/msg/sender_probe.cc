// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/sender_probe.h"

#include <chrono>

#include "transport/msg/recv_session.h"

namespace ztcp::msg {
namespace {

constexpr Duration kAfterRefusal = std::chrono::milliseconds(100);
constexpr Duration kAfterAnswer = std::chrono::seconds(1);

}  // namespace

void SenderProbe::start(TimePoint now, StreamSource& source, Endpoint listening,
                        const DialSettings& settings, Duration timeout) {
  stop();
  source_ = &source;
  listening_ = listening;
  settings_ = settings;
  timeout_ = timeout;
  nobody_ = {};
  wait_until(now);
}

void SenderProbe::stop() {
  if (Stream* stream = std::exchange(stream_, nullptr)) stream->abort();
  next_ = kNever;
}

void SenderProbe::wait_until(TimePoint when) {
  next_ = when;
  session_.wake_at(when);
}

void SenderProbe::on_timers(TimePoint now) {
  if (now < next_) return;
  if (Stream* stream = std::exchange(stream_, nullptr)) {
    stream->abort();
    nobody_.is_sure(now, /*was_refused=*/false);
  }
  ask(now);
}

// Streams for sessions to come are more important than an early detection of this one's end.
void SenderProbe::ask(TimePoint now) {
  if (!source_->has_spare_stream()) return wait_until(now + kAfterAnswer);
  wait_until(now + timeout_);
  auto stream = source_->dial(now, listening_, *this, settings_);
  if (!stream) return on_answer(now, stream.error().code == Errc::kRefused);
  stream_ = *stream;
}

void SenderProbe::on_answer(TimePoint now, bool was_refused) {
  wait_until(now + (was_refused ? kAfterRefusal : kAfterAnswer));
  if (!nobody_.is_sure(now, was_refused)) return;
  stop();
  session_.on_sender_gone(now);
}

void SenderProbe::on_open(TimePoint now, Stream& stream) {
  stream_ = nullptr;
  stream.abort();
  on_answer(now, /*was_refused=*/false);
}

void SenderProbe::on_failed(TimePoint now, Error error) {
  stream_ = nullptr;
  on_answer(now, error.code == Errc::kRefused);
}

}  // namespace ztcp::msg
