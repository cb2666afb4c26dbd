// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/recv_comm.h"

#include <algorithm>
#include <endian.h>
#include <limits>
#include <utility>

#include "core/log.h"

namespace ztcp::verbs {

QueuePairRecv::QueuePairRecv(std::shared_ptr<ControlThread> control_thread,
                             const std::shared_ptr<Connection>& connection)
    : end_(std::move(control_thread), connection),
      timer_(connection->report()),
      flushers_(connection->rail_states().size()) {
  for (std::uint16_t i = 0; i < kPosts; ++i) {
    requests_[i].comm = this;
    requests_[i].number = i;
    flushes_[i].comm = this;
  }
}

Result<RecvCommPtr> QueuePairRecv::open(std::shared_ptr<ControlThread> control_thread,
                                        const std::shared_ptr<Connection>& connection) {
  return RecvCommPtr(new QueuePairRecv(std::move(control_thread), connection));
}

// Flushes are prepared here, where it may take a while and an error reaches NCCL; the first flush
// happens in the middle of its traffic. Connections of host memory need none.
Result<MemoryKey*> QueuePairRecv::register_memory(const Region& region) {
  MemoryKey* const key = ZTCP_TRY(end_.register_memory(region));
  if (registered(key)->is_host) return key;
  if (const Status ready = prepare_flushes(); !ready) {
    (void)end_.deregister_memory(key);
    return tl::unexpected(ready.error());
  }
  return key;
}

// NCCL's progress thread may use the connection meanwhile. Over several rails it does so under the
// connection's lock; over a single rail only the flusher is touched here, which no thread uses
// before it has a key of GPU memory.
Status QueuePairRecv::prepare_flushes() {
  const std::lock_guard making(flushers_mutex_);
  if (has_prepared_flushes_ || end_.connection().rails().first().device.is_flush_disabled)
    return {};
  std::optional<CommEnd::Scope> scope;
  if (flushers_.size() > 1) scope.emplace(end_);
  for (std::size_t i = 0; i < flushers_.size(); ++i)
    if (may_flush(end_.connection().rail_states()[i]) && !flushers_[i]) ZTCP_CHECK(make_flusher(i));
  has_prepared_flushes_ = true;
  return {};
}

// TCP carries no GPU memory.
bool QueuePairRecv::may_flush(const RailState& rail_state) const {
  return !rail_state.is_tcp() && rail_state.is_polled();
}

// A rail that fails here gets no flusher.
Status QueuePairRecv::make_flusher(std::size_t rail) {
  const RailState& rail_state = end_.connection().rail_states()[rail];
  auto made = Flusher::create(rail_state.rail->device, rail_state.rail->address(),
                              rail_state.queues->manager(), end_.connect_timeout());
  if (made) {
    flushers_[rail] = std::move(*made);
  } else if (flushers_.size() == 1 || !end_.lose(rail, made.error().reason)) {
    log::warn("{}: no queue pair for flushes of GPU memory over {}, for the connection from {}: {}",
              end_.connection().rails().name, rail_state.rail->device.place(),
              to_string(end_.connection().peer()), made.error().reason);
    return tl::unexpected(made.error().error);
  }
  return {};
}

Result<Request*> QueuePairRecv::post_recv(std::span<const RecvBuffer> buffers) {
  const CommEnd::Scope scope(end_);
  if (end_.error()) [[unlikely]]
    return tl::unexpected(*end_.error());
  if (buffers.empty() || buffers.size() > kMaxReceives)
    return fail(Errc::kInvalidArgument, "a receive of no buffer, or of more than maxRecvs");
  Received& request = requests_[session().next_number()];
  if (request.is_held || !session().can_post()) {
    ZTCP_CHECK(progress());
    return nullptr;
  }
  std::array<RecvSession::Buffer, kMaxReceives> wanted;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const RecvBuffer& from = buffers[i];
    const RegisteredMemory* const memory = registered(from.key);
    if (memory == nullptr && !from.bytes.empty())
      return fail(Errc::kInvalidArgument, "a receive into memory that was not registered");
    constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
    wanted[i] = {reinterpret_cast<std::uint64_t>(from.bytes.data()),
                 memory == nullptr ? nullptr : &memory->rkeys,
                 static_cast<std::uint32_t>(std::min(from.bytes.size(), kMost)), from.tag,
                 (memory == nullptr || memory->is_host ? Slot::kHost : 0U) |
                     (from.is_polled ? Slot::kPolled : 0U)};
  }
  if (const Status posted = session().post({wanted.data(), buffers.size()}); !posted)
    return tl::unexpected(end_.fail(posted.error(), ""));
  request.begin(buffers.size());
  request.begun = timer_.begin(buffers.front().bytes.size());
  return &request;
}

Status QueuePairRecv::progress() {
  const bool moved = ZTCP_TRY(end_.poll());
  return moved ? Status() : end_.check_peer(!session().is_idle());
}

Result<bool> QueuePairRecv::test(Received& received, std::span<std::size_t> sizes_bytes) {
  const CommEnd::Scope scope(end_);
  if (!session().is_done(received.number)) {
    if (end_.error()) [[unlikely]]
      return tl::unexpected(*end_.error());
    ZTCP_CHECK(progress());
    if (!session().is_done(received.number)) return false;
  }
  for (std::size_t i = 0; i < received.buffers(); ++i)
    timer_.end(session().received_bytes(received.number, i), received.begun);
  const std::size_t count = std::min(sizes_bytes.size(), received.buffers());
  for (std::size_t i = 0; i < count; ++i)
    sizes_bytes[i] = session().received_bytes(received.number, i);
  received.is_held = false;
  return true;
}

// The queue pair that told the sender of the buffers; the sender chooses those of the bytes.
std::size_t QueuePairRecv::pieces(const Received& received, std::span<PieceFacts, kMaxPieces> out) {
  const CommEnd::Scope scope(end_);
  const auto over = session().slot_queue_pair();
  out[0] = over ? end_.connection().traffic().facts_of(*over) : PieceFacts{};
  out[0].work_id = received.number;
  return 1;
}

// One read on each rail suffices, of the last buffer in GPU memory: it pushes all that the same
// device wrote before. The writes of a failed rail were pushed when its queue pairs were destroyed:
// the device confirms that behind them.
Result<Request*> QueuePairRecv::post_flush(std::span<const RecvBuffer> buffers) {
  const CommEnd::Scope scope(end_);
  if (end_.error()) [[unlikely]]
    return tl::unexpected(*end_.error());
  const auto last = std::find_if(buffers.rbegin(), buffers.rend(), [](const RecvBuffer& buffer) {
    const RegisteredMemory* const memory = registered(buffer.key);
    return memory != nullptr && !memory->is_host && !buffer.bytes.empty();
  });
  if (last == buffers.rend() || end_.connection().rails().first().device.is_flush_disabled)
    return nullptr;
  end_.connection().traffic().figures().gpu_flushes.add();
  Flushed& flushed = flushes_[next_flush_++ % kPosts];
  for (std::size_t i = 0; i < flushers_.size(); ++i) {
    flushed.ids[i] = Flushed::kNone;
    const RailState& rail_state = end_.connection().rail_states()[i];
    if (!may_flush(rail_state)) continue;
    // The rail has come back.
    if (!flushers_[i]) {
      if (const Status made = make_flusher(i); !made)
        return tl::unexpected(end_.fail(made.error(), "a flush"));
    }
    if (!flushers_[i]) continue;
    if (flushers_[i]->is_full()) return fail(Errc::kFull, "flushes that nobody tested");
    const auto begun =
        flushers_[i]->begin(last->bytes.data(), registered(last->key)->rkeys[rail_state.key]);
    if (!begun) return tl::unexpected(end_.fail(begun.error(), "a flush"));
    flushed.ids[i] = *begun;
  }
  return &flushed;
}

Result<bool> QueuePairRecv::test(Flushed& flushed) {
  const CommEnd::Scope scope(end_);
  if (end_.error()) [[unlikely]]
    return tl::unexpected(*end_.error());
  bool all = true;
  for (std::size_t i = 0; i < flushers_.size(); ++i) {
    if (flushed.ids[i] == Flushed::kNone) continue;
    // The rail has failed since; destroying its queue pairs pushed its writes.
    if (!end_.connection().rail_states()[i].is_polled()) {
      flushers_[i].reset();
      for (Flushed& one : flushes_) one.ids[i] = Flushed::kNone;
      continue;
    }
    const Result<bool> done = flushers_[i]->is_done(flushed.ids[i]);
    if (done) [[likely]] {
      all = all && *done;
      continue;
    }
    const std::string why = "the flush of GPU memory: " + flushers_[i]->why();
    if (!end_.lose(i, why)) return tl::unexpected(end_.fail(done.error(), why));
    flushers_[i].reset();
    for (Flushed& one : flushes_) one.ids[i] = Flushed::kNone;
  }
  return all;
}

void QueuePairRecv::close() {
  end_.close();
  delete this;
}

}  // namespace ztcp::verbs
