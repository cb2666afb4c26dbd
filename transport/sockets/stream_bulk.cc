// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A stream's calls for bulk data, which workers do, and their results.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/sockets/stream.h"

namespace ztcp::sockets {

// Clears is_readable_, since the worker reads until the place is full or the socket is empty. An
// event of epoll during the call sets it again.
bool SocketStream::give_receive(const Place& next) {
  const std::span<std::byte> place = next.bytes;
  const std::size_t bytes = std::min(place.size(), BulkCall::kMostBytes);
  BulkCalls& calls = host_.bulk_calls();
  if (!calls.has_room() || !events_->lend_place()) return false;
  call_.stream = this;
  call_.kind = BulkCall::Kind::kReceive;
  call_.is_polled = next.is_polled;
  call_.fd = fd_.get();
  call_.vector[0] = {place.data(), bytes};
  // The header of the next message follows the place's last byte.
  call_.vector[1] = {behind_.data(), bytes == place.size() ? behind_.size() : 0};
  call_.vectors = 2;
  call_.enough_bytes = call_bytes_ = bytes;
  calls.give(call_);
  ++counters_.worker_calls;
  is_readable_ = false;
  return true;
}

bool SocketStream::give_send() {
  BulkCalls& calls = host_.bulk_calls();
  if (!is_writable_ || queue_.bytes() < BulkCall::kLeastBytes || state_ == State::kConnecting)
    return false;
  if (!calls.has_room()) return false;
  call_.stream = this;
  call_.kind = BulkCall::Kind::kSend;
  call_.fd = fd_.get();
  call_.vectors = static_cast<std::uint32_t>(queue_.gather(call_.vector, BulkCall::kMostBytes));
  call_bytes_ = 0;
  for (std::uint32_t i = 0; i < call_.vectors; ++i) call_bytes_ += call_.vector[i].iov_len;
  calls.give(call_);
  ++counters_.worker_calls;
  is_writable_ = false;
  return true;
}

void SocketStream::on_call_done(TimePoint now) {
  if (is_gone()) return;
  if (call_.kind == BulkCall::Kind::kSend) {
    counters_.send_calls += call_.calls;
    on_sent(now);
  } else {
    counters_.receive_calls += call_.calls;
    on_received(now);
  }
  // Also for bytes written while the worker had the call: no other event follows for them.
  if (!is_gone() && wants_to_send()) host_.on_sendable(*this);
}

void SocketStream::on_received(TimePoint now) {
  const std::size_t placed = std::min(call_.moved_bytes, call_bytes_);
  const std::size_t rest = call_.moved_bytes - placed;
  counters_.received_bytes += call_.moved_bytes;
  counters_.copied_bytes += call_.is_polled ? call_.moved_bytes : rest;
  const bool has_ended = call_.has_ended;
  const int sys_errno = call_.sys_errno;
  // Both vectors are full, so the socket may hold more.
  if (call_.vector[0].iov_len + call_.vector[1].iov_len == 0 || may_end_) is_readable_ = true;
  expects_place_ = placed != 0;
  if (events_ != nullptr) events_->on_placed(now, placed);
  if (events_ != nullptr && rest != 0) events_->on_bytes(now, std::span(behind_).first(rest));
  if (is_gone()) return;
  if (has_ended) {
    is_readable_ = false;
    on_end(now);
  } else if (sys_errno != 0 && sys_errno != EAGAIN) {
    fail(now, sys_errno, "recvmsg");
  }
}

void SocketStream::on_sent(TimePoint now) {
  switch (call_.sys_errno) {
    case 0:
      if (call_.moved_bytes == call_bytes_ || call_.moved_bytes == 0) is_writable_ = true;
      break;
    case EAGAIN:
      break;
    case ENOBUFS:
    case ENOMEM:  // The next turn retries.
      ++counters_.send_refusals;
      is_writable_ = true;
      break;
    default:
      return on_send_error(now, call_.sys_errno);
  }
  if (call_.moved_bytes != 0) take_sent(now, call_.moved_bytes);
}

}  // namespace ztcp::sockets
