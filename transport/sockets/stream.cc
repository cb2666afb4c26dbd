// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utility>

#include "transport/msg/record.h"

namespace ztcp::sockets {
namespace {

// A chunk's header, which tells the place of the chunk's bytes.
constexpr std::size_t kHeader = msg::kChunkRecordBytes;
// Copying so many bytes takes longer than another system call that receives them in place.
constexpr std::size_t kWorthPlacing = 8U << 10;
// Up to so many bytes are peeked at first; see set_direct().
constexpr std::size_t kLittle = 8U << 10;
// After a message without a place, so many large reads pass before a header is read alone again.
constexpr std::uint32_t kReadsBetweenProbes = 64;
constexpr std::size_t kVectors = 32;
// How long the peer may take to end its direction once we have ended ours.
constexpr Duration kEndTimeout = std::chrono::seconds(8);

ssize_t read_to(int fd, std::span<std::byte> place, std::span<std::byte> behind, int flags) {
  flags |= MSG_DONTWAIT;
  if (place.empty()) return recv(fd, behind.data(), behind.size(), flags);
  std::array<iovec, 2> vectors{{{place.data(), place.size()}, {behind.data(), behind.size()}}};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  return recvmsg(fd, &message, flags);
}

// For one piece send() is the shorter path into the kernel.
ssize_t write_from(int fd, std::span<iovec> vectors) {
  if (vectors.size() == 1)
    return ::send(fd, vectors[0].iov_base, vectors[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

std::size_t SocketStream::room() const {
  if (state_ != State::kOpen || wants_fin_ || !queue_.has_room()) return 0;
  return kQueueBytes - std::min(kQueueBytes, queue_.bytes());
}

bool SocketStream::write(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
  const std::size_t queued = queue_.bytes();
  if (state_ != State::kOpen || wants_fin_ || !queue_.push(copied, referenced)) return false;
  counters_.queued_bytes += queue_.bytes() - queued;
  if (is_writable_) host_.on_sendable(*this);
  return true;
}

void SocketStream::finish() {
  wants_fin_ = true;
  host_.on_sendable(*this);
}

void SocketStream::close() {
  settle_place();
  state_ = State::kEnding;
  events_ = nullptr;
  deadline_ = kNever;
  finish();
}

void SocketStream::ask_delivery() {
  if (is_gone() || std::exchange(in_delivery_list, true)) return;
  host_.on_delivery_asked(*this);
}

bool SocketStream::tell_delivery(TimePoint now) {
  if (is_gone() || events_ == nullptr) return true;
  int unacked = 0;
  ++counters_.queue_calls;
  if (ioctl(fd_.get(), SIOCOUTQ, &unacked) != 0) return false;
  // While a worker sends, the kernel may have more than taken_bytes_.
  const auto left = static_cast<std::uint64_t>(unacked);
  events_->on_delivered(now, taken_bytes_ - std::min(taken_bytes_, left));
  return left == 0 && queue_.empty() && !call_.is_out;
}

void SocketStream::abort() {
  events_ = nullptr;
  go(/*with_reset=*/true);
}

void SocketStream::go(bool with_reset) {
  if (is_gone()) return;
  // A worker with a call of this stream still uses the memory and the descriptor.
  const bool is_free = !call_.is_out || host_.bulk_calls().wait_for(call_);
  health_at_end_ = health();
  state_ = State::kGone;
  counters_.queued_bytes -= queue_.bytes();
  queue_.clear();
  counters_.retransmissions += retransmissions();
  host_.on_gone(*this);
  if (!is_free) return;  // The process ends, and the worker may still use the descriptor.
  if (with_reset) reset(std::move(fd_));
  fd_ = Fd();
}

void SocketStream::fail(TimePoint now, int sys_errno, const char* where) {
  fail(now, Error{to_errc(sys_errno), sys_errno, where});
}

void SocketStream::fail(TimePoint now, Error error) {
  if (in_delivery_list) tell_delivery(now);
  StreamEvents* const events = std::exchange(events_, nullptr);
  if (events != nullptr) ++counters_.failed;
  go(/*with_reset=*/true);
  if (events != nullptr) events->on_failed(now, error);
}

void SocketStream::give_up(TimePoint now) {
  if (state_ == State::kEnding) return go(/*with_reset=*/true);
  fail(now, ETIMEDOUT, "connect");
}

void SocketStream::on_ready(TimePoint now, std::uint32_t epoll_events) {
  if ((epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) may_end_ = true;
  if (state_ == State::kConnecting) {
    if ((epoll_events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    open(now);
    if (state_ != State::kOpen) return;
  }
  if ((epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) is_readable_ = true;
  if ((epoll_events & EPOLLOUT) != 0) {
    is_writable_ = true;
    if (has_to_send()) host_.on_sendable(*this);
  }
}

void SocketStream::open(TimePoint now) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return fail(now, connect_error(fd_, error));
  state_ = State::kOpen;
  deadline_ = kNever;
  host_.on_connected(fd_);
  events_->on_open(now, *this);
}

bool SocketStream::receive(TimePoint now, std::span<std::byte> scratch) {
  const std::size_t burst = burst_bytes();
  std::size_t taken = 0;
  while (is_readable() && taken < burst && receive_once(now, scratch, taken)) {
  }
  return taken != 0;
}

// False: no more for now. Bytes without a place, and those behind a place, are read to `scratch`.
// Where messages are large that is only a header, so that the rest can be received in place.
bool SocketStream::receive_once(TimePoint now, std::span<std::byte> scratch, std::size_t& taken) {
  const Place next = events_ != nullptr ? events_->place() : Place{};
  if (seen_bytes_ != 0 && is_to_be_placed(next)) {
    if (next.is_polled) reads_little_ = false;  // Without a free worker `scratch` takes it all.
    return take_seen(now, scratch);
  }
  if (next.bytes.size() >= BulkCall::kLeastBytes && give_receive(next)) return false;
  const std::span<std::byte> place = next.unpolled();
  const bool is_at_header = next.bytes.empty() && expects_place_ && seen_bytes_ == 0;
  const bool looks =
      is_direct_ && reads_little_ && place.empty() && !is_at_header && seen_bytes_ == 0;
  std::span<std::byte> behind = scratch;
  if (is_at_header || !place.empty())
    behind = scratch.first(kHeader);
  else if (looks)
    behind = scratch.first(kLittle);
  const ssize_t got = read_to(fd_.get(), place, behind, looks ? MSG_PEEK : 0);
  ++counters_.receive_calls;
  if (got <= 0) return on_no_bytes(now, got);
  auto bytes = static_cast<std::size_t>(got);
  reads_little_ = bytes <= kLittle;
  // A short read has emptied the socket, so the next byte is a new edge for epoll.
  if (bytes < place.size() + behind.size() && !looks && !may_end_) is_readable_ = false;
  if (looks) {
    seen_bytes_ = bytes;
  } else if (const std::size_t seen = std::min(seen_bytes_, bytes); seen != 0) {
    seen_bytes_ -= seen;
    bytes -= seen;
    behind = behind.subspan(seen);
    if (bytes == 0) return true;
  }
  taken += bytes;
  counters_.received_bytes += bytes;
  const std::size_t placed = std::min(bytes, place.size());
  if (placed != 0) events_->on_placed(now, placed);
  if (bytes == placed) return true;
  counters_.copied_bytes += bytes - placed;
  if (events_ != nullptr) events_->on_bytes(now, behind.first(bytes - placed));
  if (is_at_header) {
    expects_place_ = events_ != nullptr && is_worth_placing(events_->place());
    reads_until_probe_ = kReadsBetweenProbes;
  } else if (bytes >= kWorthPlacing && !looks) {
    expects_place_ = is_worth_placing(next) || reads_until_probe_ == 0;
    reads_until_probe_ -= expects_place_ ? 0 : 1;
  }
  return !looks;
}

// Removes the peeked bytes from the kernel before later ones are received in place.
bool SocketStream::take_seen(TimePoint now, std::span<std::byte> scratch) {
  const ssize_t got = recv(fd_.get(), scratch.data(), seen_bytes_, MSG_DONTWAIT | MSG_TRUNC);
  ++counters_.receive_calls;
  if (got <= 0) return on_no_bytes(now, got);
  seen_bytes_ -= static_cast<std::size_t>(got);
  return true;
}

// True: a signal interrupted the call, which is repeated.
bool SocketStream::on_no_bytes(TimePoint now, ssize_t got) {
  if (got < 0 && errno == EINTR) return true;
  is_readable_ = false;
  if (send_errno_ != 0)
    fail(now, send_errno_, "sendmsg");
  else if (got == 0)
    on_end(now);
  else if (errno != EAGAIN)
    fail(now, errno, "recvmsg");
  return false;
}

// Whether the next bytes are worth a header read alone, so that they are received in place: by the
// kernel, or by a worker if their owner polls that place.
bool SocketStream::is_worth_placing(const Place& next) const {
  return is_to_be_placed(next) && next.bytes.size() >= kWorthPlacing;
}

bool SocketStream::is_to_be_placed(const Place& next) const {
  if (!next.is_polled) return !next.bytes.empty();
  return next.bytes.size() >= BulkCall::kLeastBytes && host_.bulk_calls().has_workers();
}

void SocketStream::on_end(TimePoint now) {
  if (in_delivery_list) tell_delivery(now);  // Before the user closes the stream.
  if (!std::exchange(has_ended_, true) && events_ != nullptr) events_->on_closed(now);
  end_if_over(now);
}

// Ends the stream once both directions have ended.
void SocketStream::end_if_over(TimePoint now) {
  if (is_gone() || !has_ended_ || !said_fin_) return;
  StreamEvents* const events = std::exchange(events_, nullptr);
  go(/*with_reset=*/false);
  if (events != nullptr) events->on_ended(now);
}

bool SocketStream::send(TimePoint now) {
  if (call_.is_out || give_send()) return false;
  const std::size_t burst = burst_bytes();
  std::size_t sent = 0;
  while (is_writable_ && !queue_.empty() && sent < burst && state_ != State::kConnecting) {
    std::array<iovec, kVectors> vectors;
    const auto next = std::span(vectors).first(queue_.gather(vectors, burst));
    std::size_t asked = 0;
    for (const iovec& vector : next) asked += vector.iov_len;
    const ssize_t got = write_from(fd_.get(), next);
    ++counters_.send_calls;
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        is_writable_ = false;
        break;
      }
      if (errno == ENOBUFS || errno == ENOMEM) {  // The next turn retries.
        ++counters_.send_refusals;
        break;
      }
      on_send_error(now, errno);
      return sent != 0;
    }
    const auto bytes = static_cast<std::size_t>(got);
    sent += bytes;
    // epoll reports when the kernel has room again.
    if (bytes < asked) is_writable_ = false;
    take_sent(now, bytes);
    if (is_gone()) return true;
  }
  say_fin(now);
  return sent != 0;
}

// The kernel may still hold bytes that the peer sent before it closed or the path failed: these are
// read before the stream fails.
void SocketStream::on_send_error(TimePoint now, int sys_errno) {
  if (state_ != State::kOpen || has_ended_ || send_errno_ != 0)
    return fail(now, sys_errno, "sendmsg");
  send_errno_ = sys_errno;
  is_writable_ = false;
  may_end_ = is_readable_ = true;
  host_.on_readable(*this);
}

void SocketStream::take_sent(TimePoint now, std::size_t bytes) {
  queue_.pop(bytes);
  counters_.queued_bytes -= bytes;
  taken_bytes_ += bytes;
  counters_.sent_bytes += bytes;
  if (events_ != nullptr) events_->on_acked(now, taken_bytes_);
}

void SocketStream::say_fin(TimePoint now) {
  if (!queue_.empty() || !wants_fin_ || said_fin_ || is_gone()) return;
  shutdown(fd_.get(), SHUT_WR);
  said_fin_ = true;
  if (state_ == State::kEnding) deadline_ = now + kEndTimeout;
  end_if_over(now);
}

}  // namespace ztcp::sockets
