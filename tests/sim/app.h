// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The user of one stream in a simulation: sends a block, compares the received bytes with the
// expected block, and records every event. A wrong or repeated byte is detected on arrival.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/stream.h"
#include "tests/sim/frames.h"
#include "transport/tcp/stack.h"

namespace ztcp::sim {

class App final : public StreamEvents, public tcp::StreamAcceptor {
 public:
  // Both blocks outlive the app. It sends as soon as it can.
  App(std::span<const std::byte> to_send, std::span<const std::byte> to_receive)
      : to_send_(to_send), to_receive_(to_receive) {}

  void attach(Stream& stream) { stream_ = &stream; }
  // Closes once all is sent and acknowledged, or as soon as the peer has closed.
  void close_when_acked() { close_when_acked_ = true; }
  // Closes once all is acknowledged and received: the stack would reset data that comes later.
  void close_when_done() { close_when_done_ = true; }
  // Half-closes: it still receives.
  void finish_when_acked() { finish_when_acked_ = true; }
  void close_when_peer_does() { close_when_peer_does_ = true; }
  void refuse_streams() { refuse_ = true; }
  // The bytes of one write(): few bytes make many small writes.
  void set_chunk(std::size_t bytes) { chunk_bytes_ = bytes; }
  // Each write waits until the one before it is acknowledged.
  void write_one_by_one() { one_by_one_ = true; }
  void expect_late_acks() { stream_->expect_late_acks(); }
  // Ends the stream at once; it is not touched afterwards.
  void close() { leave(&Stream::close); }
  void abort() { leave(&Stream::abort); }

  bool is_open() const { return open_; }
  bool is_finished() const { return stream_ == nullptr; }
  bool is_peer_closed() const { return peer_closed_; }
  std::size_t received() const { return received_; }
  bool has_received_all() const { return received_ == to_receive_.size(); }
  std::uint64_t acked() const { return acked_; }
  bool is_all_acked() const { return acked_ == to_send_.size(); }
  const std::optional<Error>& error() const { return error_; }
  // The first broken promise of the stack; empty when there is none.
  const std::string& violation() const { return violation_; }

  // --- StreamAcceptor
  StreamEvents* on_accept(TimePoint, Stream& stream, Endpoint) override {
    if (refuse_ || stream_ != nullptr) return nullptr;
    open_ = true;
    stream_ = &stream;
    pump();
    return this;
  }

  // --- StreamEvents
  void on_open(TimePoint, Stream& stream) override {
    if (open_) violation_ = "opened twice";
    if (stream.room() == 0) violation_ = "opened without room";
    open_ = true;
    stream_ = &stream;
    pump();
  }
  void on_bytes(TimePoint, std::span<const std::byte> bytes) override {
    if (stream_ == nullptr || peer_closed_) violation_ = "bytes after the end";
    if (bytes.size() > to_receive_.size() - received_) {
      violation_ = "more bytes than were sent";
      return;
    }
    if (std::memcmp(bytes.data(), to_receive_.data() + received_, bytes.size()) != 0)
      violation_ = "wrong bytes at offset " + std::to_string(received_);
    received_ += bytes.size();
    close_if_done();
  }
  void on_acked(TimePoint, std::uint64_t total_bytes) override {
    if (total_bytes < acked_) violation_ = "acknowledged bytes decreased";
    if (total_bytes > written_) violation_ = "acknowledged bytes that were never written";
    acked_ = total_bytes;
    pump();
    if (close_when_acked_ && is_all_acked()) close();
    close_if_done();
    if (finish_when_acked_ && is_all_acked() && stream_ != nullptr) {
      finish_when_acked_ = false;
      stream_->finish();
    }
  }
  void on_closed(TimePoint) override {
    if (peer_closed_) violation_ = "closed twice";
    peer_closed_ = true;
    if (close_when_peer_does_) close();
  }
  void on_ended(TimePoint) override {
    if (!peer_closed_ || !is_all_acked()) violation_ = "ended before its end";
    stream_ = nullptr;
  }
  void on_failed(TimePoint, Error error) override {
    error_ = error;
    stream_ = nullptr;
  }

 private:
  void close_if_done() {
    if (close_when_done_ && is_all_acked() && has_received_all()) close();
  }
  // As msg/ does: a small copied record in front of referenced memory.
  void pump() {
    while (stream_ != nullptr && written_ < to_send_.size() && stream_->room() > 0) {
      if (one_by_one_ && acked_ != written_) return;
      const auto left = to_send_.subspan(written_);
      const auto copied =
          left.first(std::min<std::size_t>(left.size(), std::min<std::size_t>(chunk_bytes_, 32)));
      const auto referenced =
          left.subspan(copied.size(), std::min(chunk_bytes_, left.size()) - copied.size());
      const Fragment fragment{referenced.data(), static_cast<std::uint32_t>(referenced.size()),
                              kUnmapped};
      const std::size_t fragments = referenced.empty() ? 0 : 1;
      // Before write(), which must not call back, so that a stack that does is detected.
      written_ += copied.size() + referenced.size();
      if (!stream_->write(copied, std::span(&fragment, fragments))) {
        violation_ = "write refused although there was room";
        return;
      }
    }
  }

  void leave(void (Stream::*how)()) {
    Stream* stream = stream_;
    stream_ = nullptr;
    if (stream != nullptr) (stream->*how)();
  }

  std::span<const std::byte> to_send_;
  std::span<const std::byte> to_receive_;
  Stream* stream_ = nullptr;
  std::size_t chunk_bytes_ = 256U << 10;
  std::size_t written_ = 0;
  std::size_t received_ = 0;
  std::uint64_t acked_ = 0;
  bool open_ = false;
  bool peer_closed_ = false;
  bool refuse_ = false;
  bool one_by_one_ = false;
  bool close_when_acked_ = false;
  bool close_when_done_ = false;
  bool finish_when_acked_ = false;
  bool close_when_peer_does_ = false;
  std::optional<Error> error_;
  std::string violation_;
};

}  // namespace ztcp::sim
