// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's request: the record of a message, or of a group of them, that the session works on, and an
// atomic word with its state. NCCL's progress thread writes a request and posts it; from then on it
// belongs to the engine until the word says done.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/clock.h"
#include "transport/msg/recv_message.h"
#include "transport/msg/send_message.h"
#include "transport/transport.h"

namespace ztcp::comms {

class ReceivingComm;
class SendingComm;

// Memory of a posted message. Atomic only because deregister_memory() reads it on another thread,
// while it may be half rewritten: a thread that has read a part of a later post then reads a
// changed word of the request, too (TableRequest::stays_posted()).
class PostedRange {
 public:
  void set(const std::byte* data, std::size_t size_bytes) {
    data_.store(data, std::memory_order_release);
    size_bytes_.store(size_bytes, std::memory_order_release);
  }
  void clear() { size_bytes_.store(0, std::memory_order_release); }
  bool touches(const void* address, std::size_t size_bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const auto data = reinterpret_cast<std::uintptr_t>(data_.load(std::memory_order_acquire));
    const std::size_t bytes = size_bytes_.load(std::memory_order_acquire);
    return bytes != 0 && (data - first < size_bytes || first - data < bytes);
  }

 private:
  std::atomic<const std::byte*> data_;
  std::atomic<std::size_t> size_bytes_;
};

// A request of a RequestTable, and the comm that it belongs to.
template <class Comm>
class TableRequest : public Request {
 public:
  using Owner = Comm;
  TableRequest(Owner& comm, std::uint8_t index) : index_(index), comm_(comm) {}

  Result<bool> test(std::span<std::size_t> sizes_bytes) final;
  std::uint8_t index() const { return index_; }
  // The holder of the baton: when the engine took the request; zero while none is in flight.
  void set_taken(TimePoint at) { taken_ = at; }
  TimePoint taken() const { return taken_; }
  bool is_done() const { return word_.load(std::memory_order_acquire) % kStates == kDone; }
  // The table's free list, NCCL's progress thread.
  std::uint8_t next_free() const { return next_free_; }
  void set_free(std::uint8_t next) {
    word_.store(word_.load(std::memory_order_relaxed) + kStates - kDone, std::memory_order_relaxed);
    next_free_ = next;
  }

 protected:
  ~TableRequest() = default;
  void set_posted() { step(); }
  void set_done() { step(); }
  // Any thread. Whether the request is posted and `is` returns true; false where the request
  // completes (and is perhaps posted again) before `is` returns.
  template <class Is>
  bool stays_posted(Is&& is) const {
    const std::uint32_t word = word_.load(std::memory_order_acquire);
    return word % kStates == kPosted && is() && word_.load(std::memory_order_acquire) == word;
  }

 private:
  enum : std::uint32_t { kFree, kPosted, kDone, kStates = 4 };

  // Called by one thread at a time.
  void step() { word_.store(word_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  const std::uint8_t index_;
  TimePoint taken_{};
  std::uint8_t next_free_ = 0;              // Valid while it is free.
  std::atomic<std::uint32_t> word_{kFree};  // The state, plus kStates for each earlier use.
  Owner& comm_;
};

template <>
Result<bool> TableRequest<SendingComm>::test(std::span<std::size_t> sizes_bytes);
template <>
Result<bool> TableRequest<ReceivingComm>::test(std::span<std::size_t> sizes_bytes);

// The order of the bases keeps the words that a small message needs on the same cache lines.
class alignas(64) SendRequest final : public TableRequest<SendingComm>,
                                      private PostedRange,
                                      public msg::SendMessage {
 public:
  using TableRequest::TableRequest;

  // NCCL's progress thread.
  void start(std::span<const std::byte> bytes, int tag, std::uint32_t memory_key) {
    PostedRange::set(bytes.data(), bytes.size());
    SendMessage::start(bytes, static_cast<std::uint32_t>(tag), memory_key);
    set_posted();
  }
  void tell_sizes(std::span<std::size_t> sizes_bytes) const {
    if (!sizes_bytes.empty()) sizes_bytes[0] = size_bytes();
  }

  // The holder of the baton.
  static SendRequest& of(msg::SendMessage& message) { return static_cast<SendRequest&>(message); }
  void finish() {
    set_taken({});
    set_done();
  }

  // Any thread.
  bool touches(const void* address, std::size_t bytes) const {
    return stays_posted([&] { return PostedRange::touches(address, bytes); });
  }
};

class alignas(64) RecvRequest final : public TableRequest<ReceivingComm> {
 public:
  // The record of one buffer.
  struct Part : msg::RecvMessage {
    RecvRequest* whole;
    PostedRange range;
  };

  using TableRequest::TableRequest;

  // NCCL's progress thread.
  void start(std::span<const RecvBuffer> buffers) {
    buffers_ = static_cast<std::uint8_t>(buffers.size());
    missing_ = buffers_;
    posted_parts_.store(buffers_, std::memory_order_release);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const RecvBuffer& buffer = buffers[i];
      Part& part = parts_[i];
      part.whole = this;
      part.range.set(buffer.bytes.data(), buffer.bytes.size());
      part.start(buffer.bytes, static_cast<std::uint32_t>(buffer.tag), buffer.is_polled);
    }
    set_posted();
  }
  void tell_sizes(std::span<std::size_t> sizes_bytes) const {
    for (std::size_t i = 0; i < sizes_bytes.size() && i < buffers_; ++i)
      sizes_bytes[i] = sizes_bytes_[i];
  }

  // The holder of the baton.
  std::span<Part> parts() { return {parts_.data(), buffers_}; }
  static RecvRequest& of(msg::RecvMessage& message) { return *static_cast<Part&>(message).whole; }
  // A message has arrived; the last one completes the request.
  void finish_part(msg::RecvMessage& message) {
    Part& part = static_cast<Part&>(message);
    sizes_bytes_[static_cast<std::size_t>(&part - parts_.data())] = message.size_bytes();
    if (--missing_ == 0) {
      set_taken({});
      set_done();
    } else {
      part.range.clear();
    }
  }

  // Any thread.
  bool touches(const void* address, std::size_t size_bytes) const {
    return stays_posted([&] {
      for (std::size_t i = 0, n = posted_parts_.load(std::memory_order_acquire); i < n; ++i)
        if (parts_[i].range.touches(address, size_bytes)) return true;
      return false;
    });
  }

 private:
  std::uint8_t missing_;
  std::atomic<std::uint8_t> posted_parts_;  // Copy of buffers_ for other threads.
  std::array<std::size_t, kMaxReceives> sizes_bytes_;
  std::array<Part, kMaxReceives> parts_;  // Unused ones are never touched.
};

}  // namespace ztcp::comms
