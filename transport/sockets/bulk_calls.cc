// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/bulk_calls.h"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

#include "core/cpu_pause.h"
#include "core/ordered_copy.h"

namespace ztcp::sockets {
namespace {

// An empty socket in the middle of a piece fills again soon, because the peer is sending the rest
// (about 20 us for 64 KiB). To retry costs less than to hand the rest to a worker again.
constexpr int kMostTries = 16;
constexpr int kPausesBetweenTries = 32;

}  // namespace

void BulkCall::skip(std::size_t bytes) {
  moved_bytes += bytes;
  for (std::uint32_t i = 0; i < vectors; ++i) {
    const std::size_t here = std::min(bytes, vector[i].iov_len);
    vector[i].iov_base = static_cast<std::byte*>(vector[i].iov_base) + here;
    vector[i].iov_len -= here;
    bytes -= here;
  }
}

ssize_t BulkCall::send() const {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vector.data());  // sendmsg() does not write there.
  message.msg_iovlen = vectors;
  return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Like recvmsg(). Bytes for memory that its owner polls are received into `scratch` and copied in
// order.
ssize_t BulkCall::receive(std::span<std::byte> scratch) {
  std::array<iovec, 2> to{{vector[0], vector[1]}};
  if (is_polled && scratch.size() < vector[0].iov_len)
    to = {{{scratch.data(), scratch.size()}, {}}};
  else if (is_polled)
    to[0].iov_base = scratch.data();
  msghdr message{};
  message.msg_iov = to.data();
  message.msg_iovlen = to.size();
  const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
  if (is_polled && got > 0)
    ordered_copy(static_cast<std::byte*>(vector[0].iov_base), scratch.data(),
                 std::min(static_cast<std::size_t>(got), to[0].iov_len));
  return got;
}

void BulkCall::run(std::span<std::byte> scratch) {
  int tries = 0;
  do {
    const ssize_t got = kind == Kind::kSend ? send() : receive(scratch);
    ++calls;
    if (got > 0) {
      skip(static_cast<std::size_t>(got));
      tries = 0;
      continue;
    }
    if (got == 0) {
      has_ended = true;
      return;
    }
    if (errno == EINTR) continue;
    sys_errno = errno;
    if (sys_errno != EAGAIN || kind == Kind::kSend || ++tries > kMostTries) return;
    for (int i = 0; i < kPausesBetweenTries; ++i) cpu_pause();
  } while (kind == Kind::kReceive && moved_bytes < enough_bytes);
  sys_errno = 0;
}

BulkCalls::BulkCalls(std::size_t most, Workers& workers) : workers_(workers) {
  for (std::size_t i = 0; i < std::min(most, kMaxWorkers); ++i) {
    rings_.push_back(std::make_unique<Ring>());
    scratch_.emplace_back(new std::byte[BulkCall::kScratchBytes]);
  }
}

// Prefers the first idle worker, so that a few workers that are awake do all calls if they can.
// count(): no worker has room.
std::size_t BulkCalls::least_busy() const {
  std::size_t chosen = count();
  std::uint32_t most_room = 0;
  for (std::size_t i = 0; i < count() && most_room != kMostEach; ++i) {
    const std::uint32_t room = rings_[i]->room();
    if (room <= most_room) continue;
    most_room = room;
    chosen = i;
  }
  return chosen;
}

void BulkCalls::give(BulkCall& call) {
  const std::size_t worker = least_busy();
  Ring& ring = *rings_[worker];
  call.moved_bytes = 0;
  call.calls = 0;
  call.sys_errno = 0;
  call.has_ended = false;
  call.is_out = true;
  call.worker = static_cast<std::uint8_t>(worker);
  ring.put(&call);
  call.position = ring.position();
  ++out_;
  ring.publish();
  workers_.wake(worker);
}

bool BulkCalls::wait_for(const BulkCall& call) {
  while (!rings_[call.worker]->is_done(call.position))
    if (!workers_.wait_for(call.worker)) return false;
  return true;
}

bool BulkCalls::work(std::size_t worker) {
  const std::span scratch(scratch_[worker].get(), BulkCall::kScratchBytes);
  return rings_[worker]->work([scratch](BulkCall* call) { call->run(scratch); });
}

}  // namespace ztcp::sockets
