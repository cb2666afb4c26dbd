// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/bulk_calls.h"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace ztcp::sockets {
namespace {

// The sender is at the rest of the piece: its next 64 KiB take it some 20 us, and to give the rest
// of the piece away once more takes longer than to look again.
constexpr int kMostLooks = 16;
constexpr int kPausesBetweenLooks = 32;

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

void BulkCall::run() {
  int looks = 0;
  do {
    msghdr message{};
    message.msg_iov = vector.data();
    message.msg_iovlen = vectors;
    const ssize_t got = kind == Kind::kSend ? sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                                            : recvmsg(fd, &message, MSG_DONTWAIT);
    ++calls;
    if (got > 0) {
      skip(static_cast<std::size_t>(got));
      looks = 0;
      continue;
    }
    if (got == 0) {
      has_ended = true;
      return;
    }
    if (errno == EINTR) continue;
    sys_errno = errno;
    if (sys_errno != EAGAIN || kind == Kind::kSend || ++looks > kMostLooks) return;
    for (int i = 0; i < kPausesBetweenLooks; ++i) __builtin_ia32_pause();
  } while (kind == Kind::kReceive && moved_bytes < enough_bytes);
  sys_errno = 0;
}

BulkCalls::BulkCalls(std::size_t most, Workers& workers) : workers_(workers) {
  for (std::size_t i = 0; i < std::min(most, kMaxWorkers); ++i)
    rings_.push_back(std::make_unique<Ring>());
}

// The first that has nothing to do: so a few that are awake do all there is, if they can.
const std::unique_ptr<BulkCalls::Ring>* BulkCalls::least_busy() const {
  const std::unique_ptr<Ring>* chosen = nullptr;
  std::uint32_t most_room = 0;
  for (std::size_t i = 0; i < count() && most_room != kMostEach; ++i) {
    const std::uint32_t room = rings_[i]->room();
    if (room <= most_room) continue;
    most_room = room;
    chosen = &rings_[i];
  }
  return chosen;
}

void BulkCalls::give(BulkCall& call) {
  const std::unique_ptr<Ring>& ring = *least_busy();
  call.moved_bytes = 0;
  call.calls = 0;
  call.sys_errno = 0;
  call.has_ended = false;
  call.is_out = true;
  call.worker = static_cast<std::uint8_t>(&ring - rings_.data());
  ring->put(&call);
  call.position = ring->position();
  ++out_;
  ring->publish();
  workers_.wake(call.worker);
}

bool BulkCalls::wait_for(const BulkCall& call) {
  while (!rings_[call.worker]->is_done(call.position))
    if (!workers_.wait_for(call.worker)) return false;
  return true;
}

bool BulkCalls::work(std::size_t worker) {
  return rings_[worker]->work([](BulkCall* call) { call->run(); });
}

}  // namespace ztcp::sockets
