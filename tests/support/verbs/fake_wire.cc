// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The work of the devices: each queue pair's requests in order, the next queue pair at random.
#include <algorithm>
#include <cstring>
#include <span>
#include <unistd.h>
#include <utility>

#include "tests/support/verbs/fake_fabric.h"

namespace ztcp::test {
namespace {

// Attempts at a peer that does not answer or is not ready.
constexpr int kAttempts = 8;
constexpr unsigned kStepsAtOnce = 4;
constexpr std::size_t kLine = 128;

ibv_wc_opcode completed(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_SEND) return IBV_WC_SEND;
  return opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
}

// Operations that consume a receive at the peer.
bool is_message(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND;
}

// Word by word, from the first to the last.
void store(std::byte* to, std::span<const std::byte> bytes) {
  constexpr std::size_t kWord = 4;
  for (std::size_t i = 0; i < bytes.size(); i += kWord) {
    const std::size_t n = std::min(kWord, bytes.size() - i);
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + i, n);
    if (n == kWord && reinterpret_cast<std::uintptr_t>(to + i) % kWord == 0)
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(to + i), word, __ATOMIC_RELEASE);
    else
      std::memcpy(to + i, &word, n);
  }
}

}  // namespace

void FakeFabric::note(const std::string& what) { misuse_.push_back(what); }

void FakeFabric::tell(FakeContext& context, const ibv_async_event& event) {
  if (write(context.event_pipe, &event, sizeof event) != sizeof event) note("an event is lost");
}

void FakeFabric::tell_of_port(FakeContext& context, ibv_event_type type, int port) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  tell(context, event);
}

int FakeFabric::refusal_of(const std::string& call) const {
  const auto found = refusals_.find(call);
  return found == refusals_.end() ? 0 : found->second;
}

void FakeFabric::step() {
  for (unsigned i = static_cast<unsigned>(random_() % (kStepsAtOnce + 1)); i > 0; --i) {
    std::vector<FakeQueuePair*> busy;
    for (const auto& [number, qp] : queue_pairs_)
      if (!static_cast<FakeContext*>(qp->context)->fake->is_dead && qp->state == IBV_QPS_RTS &&
          !(qp->sends.empty() && qp->flying.empty()))
        busy.push_back(qp);
    if (busy.empty()) return;
    carry_out(*busy[random_() % busy.size()]);
  }
}

FakeQueuePair* FakeFabric::peer_of(const FakeQueuePair& qp) {
  const auto found = queue_pairs_.find(qp.to.dest_qp_num);
  if (found == queue_pairs_.end()) return nullptr;
  FakeQueuePair& peer = *found->second;
  const auto is_up = [](const FakeQueuePair& one) {
    const auto& ports = static_cast<FakeContext*>(one.context)->fake->spec.ports;
    return ports[one.to.port_num - 1U].state == IBV_PORT_ACTIVE &&
           !static_cast<FakeContext*>(one.context)->fake->is_dead;
  };
  const bool answers = (peer.state == IBV_QPS_RTR || peer.state == IBV_QPS_RTS) &&
                       peer.to.dest_qp_num == qp.qp_num && peer.to.rq_psn == qp.to.sq_psn;
  return answers && is_up(qp) && is_up(peer) ? &peer : nullptr;
}

FakeMemory* FakeFabric::memory_at(std::uint32_t key, const ibv_pd* pd, std::uint64_t address,
                                  std::size_t size) {
  const auto found = memory_.find(key);
  if (found == memory_.end()) return nullptr;
  FakeMemory& memory = *found->second;
  const bool is_inside = address >= memory.iova && address + size <= memory.iova + memory.length;
  return memory.pd == pd && is_inside ? &memory : nullptr;
}

// iWARP: a send completes once it has left, and arrives some time later, in order.
void FakeFabric::carry_on(FakeQueuePair& qp) {
  // A completed read has been answered.
  const bool is_read = !qp.sends.empty() && qp.sends.front().request.opcode == IBV_WR_RDMA_READ;
  if (holds_arrivals_ && is_read) return;
  if (is_read && qp.flying.empty()) return answer(qp);
  const bool arrives =
      !holds_arrivals_ && !qp.flying.empty() && (qp.sends.empty() || is_read || random_() % 2 == 0);
  if (!arrives) {
    if (qp.sends.empty()) return;
    FakeWork work = qp.sends.front();
    if ((work.request.send_flags & IBV_SEND_INLINE) == 0) {
      const std::span from(reinterpret_cast<const std::byte*>(work.piece.addr), work.piece.length);
      const FakeMemory* const memory =
          memory_at(work.piece.lkey, qp.pd, work.piece.addr, from.size());
      if (!from.empty() && memory == nullptr) return finish(qp, IBV_WC_LOC_PROT_ERR);
      if (!from.empty() && memory->region)
        work.bytes = memory->region->read(from);
      else
        work.bytes.assign(from.begin(), from.end());
      work.request.send_flags |= IBV_SEND_INLINE;
    }
    qp.flying.push_back(std::move(work));
    return finish(qp, IBV_WC_SUCCESS);
  }
  FakeWork& work = qp.flying.front();
  const ibv_wc_status status = attempt(qp, work);
  if (status == IBV_WC_SUCCESS) return qp.flying.pop_front();
  if (status == IBV_WC_RNR_RETRY_EXC_ERR) note("a message of iWARP's found no receive");
  if (status == IBV_WC_RETRY_EXC_ERR && ++work.attempts < kAttempts) return;
  fail(qp);
}

// Joins two queue pairs, as a connection manager does.
bool FakeFabric::join(const FakeEnd& one, const FakeEnd& other) {
  const auto first = queue_pairs_.find(one.queue_pair);
  const auto second = queue_pairs_.find(other.queue_pair);
  if (first == queue_pairs_.end() || second == queue_pairs_.end()) return false;
  for (FakeQueuePair* const qp : {first->second, second->second}) {
    if (!qp->is_iwarp || qp->state != IBV_QPS_INIT) return false;
    qp->state = IBV_QPS_RTS;
  }
  const auto tell = [](FakeQueuePair& qp, const FakeEnd& own, const FakeEnd& peer) {
    qp.to.dest_qp_num = peer.queue_pair;
    qp.to.max_rd_atomic = own.reads;
    qp.to.max_dest_rd_atomic = own.answers;
  };
  tell(*first->second, one, other);
  tell(*second->second, other, one);
  return true;
}

void FakeFabric::carry_out(FakeQueuePair& qp) {
  if (next_failure_ && !qp.sends.empty()) {
    const ibv_wr_opcode kind = qp.sends.front().request.opcode;
    if (next_failure_->kind ? kind == next_failure_->kind : is_message(kind))
      return finish(qp, std::exchange(next_failure_, std::nullopt)->status);
  }
  qp.is_iwarp ? carry_on(qp) : answer(qp);
}

// Completes the request with the result at the peer.
void FakeFabric::answer(FakeQueuePair& qp) {
  FakeWork& work = qp.sends.front();
  // The NIC sends it again after its timeout, which finds out whether the peer is still there.
  if (work.is_carried) {
    if (peer_of(qp) == nullptr) return finish(qp, IBV_WC_RETRY_EXC_ERR);
    if (!loses_acknowledgements_) finish(qp, IBV_WC_SUCCESS);
    return;
  }
  if ((!work.is_scattered || random_() % 4 != 0) && scatter(qp, work)) return;
  const ibv_wc_status status = attempt(qp, work);
  if (status == IBV_WC_SUCCESS && loses_acknowledgements_) {
    work.is_carried = true;
    return;
  }
  // Seven means for ever.
  if (status == IBV_WC_RNR_RETRY_EXC_ERR && qp.to.rnr_retry == 7) return;
  const bool is_tried_again = status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR;
  if (is_tried_again && ++work.attempts < kAttempts) return;
  finish(qp, status);
}

ibv_wc_status FakeFabric::attempt(FakeQueuePair& qp, const FakeWork& work) {
  FakeQueuePair* const peer = peer_of(qp);
  if (peer == nullptr) return IBV_WC_RETRY_EXC_ERR;
  const bool takes_receive = is_message(work.request.opcode);
  if (takes_receive && peer->receives.empty()) return IBV_WC_RNR_RETRY_EXC_ERR;
  const bool is_send = work.request.opcode == IBV_WR_SEND;
  const ibv_wc_status status = is_send ? fill(*peer, qp, work) : move(qp, *peer, work);
  if (status == IBV_WC_SUCCESS) ++carried_out_[work.request.opcode];
  if (status != IBV_WC_SUCCESS || !takes_receive) return status;
  ibv_wc wc{};
  wc.wr_id = peer->receives.front().id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  wc.wc_flags = is_send ? 0 : IBV_WC_WITH_IMM;
  wc.imm_data = is_send ? 0 : work.request.imm_data;
  wc.byte_len = work.piece.length;
  wc.qp_num = peer->qp_num;
  peer->receives.pop_front();
  complete(static_cast<FakeCompletionQueue&>(*peer->recv_cq), wc);
  return status;
}

// True: some lines of the write have arrived ahead of its completion.
bool FakeFabric::scatter(const FakeQueuePair& qp, FakeWork& work) {
  const FakeQueuePair* const peer = peer_of(qp);
  const std::size_t size = work.piece.length;
  const bool is_write =
      work.request.opcode == IBV_WR_RDMA_WRITE || work.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (peer == nullptr || !is_write || (work.request.send_flags & IBV_SEND_INLINE) != 0 ||
      !static_cast<FakeContext*>(peer->context)->fake->spec.scatters_lines)
    return false;
  const auto& rdma = work.request.wr.rdma;
  const FakeMemory* const local = memory_at(work.piece.lkey, qp.pd, work.piece.addr, size);
  const FakeMemory* const remote = memory_at(rdma.rkey, peer->pd, rdma.remote_addr, size);
  constexpr unsigned kNeeded = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING;
  if (local == nullptr || local->region || remote == nullptr || remote->region ||
      (remote->access & kNeeded) != kNeeded ||
      (peer->to.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) == 0)
    return false;
  const std::span from(reinterpret_cast<const std::byte*>(work.piece.addr), size);
  auto* const to = reinterpret_cast<std::byte*>(rdma.remote_addr);
  for (std::size_t at = 0; at < size; at += kLine)
    if (random_() % 2 == 0) store(to + at, from.subspan(at, std::min(kLine, size - at)));
  return work.is_scattered = true;
}

// Fills the memory of the first receive posted there.
ibv_wc_status FakeFabric::fill(FakeQueuePair& peer, const FakeQueuePair& qp, const FakeWork& work) {
  const ibv_sge& place = peer.receives.front().place;
  const std::size_t size = work.piece.length;
  const bool is_inline = (work.request.send_flags & IBV_SEND_INLINE) != 0;
  if (!is_inline && memory_at(work.piece.lkey, qp.pd, work.piece.addr, size) == nullptr)
    return IBV_WC_LOC_PROT_ERR;
  const FakeMemory* const into = memory_at(place.lkey, peer.pd, place.addr, size);
  if (size > place.length) return IBV_WC_REM_INV_REQ_ERR;
  if (into == nullptr || (into->access & IBV_ACCESS_LOCAL_WRITE) == 0) return IBV_WC_REM_OP_ERR;
  std::memcpy(reinterpret_cast<void*>(place.addr),
              is_inline ? work.bytes.data() : reinterpret_cast<const void*>(work.piece.addr), size);
  return IBV_WC_SUCCESS;
}

// Moves the bytes of one work request, in either direction.
ibv_wc_status FakeFabric::move(FakeQueuePair& qp, FakeQueuePair& peer, const FakeWork& work) {
  const std::size_t size = work.piece.length;
  if (size == 0) return IBV_WC_SUCCESS;
  const bool is_read = work.request.opcode == IBV_WR_RDMA_READ;
  const bool is_inline = (work.request.send_flags & IBV_SEND_INLINE) != 0;
  FakeMemory* const local =
      is_inline ? nullptr : memory_at(work.piece.lkey, qp.pd, work.piece.addr, size);
  if (!is_inline && local == nullptr) return IBV_WC_LOC_PROT_ERR;
  const auto& rdma = work.request.wr.rdma;
  FakeMemory* const remote = memory_at(rdma.rkey, peer.pd, rdma.remote_addr, size);
  const unsigned needed = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  if (remote == nullptr || (remote->access & needed) == 0 ||
      (peer.to.qp_access_flags & needed) == 0)
    return IBV_WC_REM_ACCESS_ERR;

  FakeMemory* const from = is_read ? remote : local;
  const auto* const at =
      reinterpret_cast<const std::byte*>(is_read ? rdma.remote_addr : work.piece.addr);
  if (is_read && (qp.to.max_rd_atomic == 0 || peer.to.max_dest_rd_atomic == 0))
    note("a read over a queue pair that was joined for none");
  if (is_read && qp.is_iwarp && (local->access & IBV_ACCESS_REMOTE_WRITE) == 0)
    note("a read of iWARP's into memory that no peer may write to");
  // A read pushes out the device's earlier writes.
  if (is_read)
    for (const auto& [key, memory] : memory_)
      if (memory->region && memory->context == peer.context)
        for (const auto& arrival : memory->region->take_arrivals(
                 {static_cast<const std::byte*>(memory->addr), memory->length}))
          memory->region->write(arrival);
  std::vector<std::byte> bytes = work.bytes;
  if (from != nullptr && from->region) bytes = from->region->read({at, size});
  if (from != nullptr && !from->region) bytes.assign(at, at + size);
  FakeMemory* const into = is_read ? local : remote;
  auto* const to = reinterpret_cast<std::byte*>(is_read ? work.piece.addr : rdma.remote_addr);
  if (into->region) {
    into->region->receive(to, bytes);
    return IBV_WC_SUCCESS;
  }
  // Slots are polled: their last word is written last. Memory for which PCIe may reorder writes is
  // filled from its end, line by line.
  if ((into->access & IBV_ACCESS_RELAXED_ORDERING) == 0) {
    store(to, bytes);
  } else {
    for (std::size_t i = (size - 1) / kLine + 1; i-- > 0;)
      store(to + i * kLine, std::span(bytes).subspan(i * kLine, std::min(kLine, size - i * kLine)));
  }
  return IBV_WC_SUCCESS;
}

void FakeFabric::finish(FakeQueuePair& qp, ibv_wc_status status) {
  const FakeWork work = std::move(qp.sends.front());
  qp.sends.pop_front();
  ++qp.unsignalled;
  if (status != IBV_WC_SUCCESS || (work.request.send_flags & IBV_SEND_SIGNALED) != 0) {
    ibv_wc wc{};
    wc.wr_id = work.request.wr_id;
    wc.status = status;
    wc.opcode = completed(work.request.opcode);
    wc.qp_num = qp.qp_num;
    wc.vendor_err = std::exchange(qp.unsignalled, 0);
    complete(static_cast<FakeCompletionQueue&>(*qp.send_cq), wc);
  }
  if (status == IBV_WC_SUCCESS) return;
  if (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR)
    if (FakeQueuePair* const peer = peer_of(qp)) {
      fail(*peer);
      tell_of_failure(*peer, IBV_EVENT_QP_ACCESS_ERR);
    }
  fail(qp);
  tell_of_failure(qp, IBV_EVENT_QP_FATAL);
}

void FakeFabric::tell_of_failure(FakeQueuePair& qp, ibv_event_type type) {
  auto& context = *static_cast<FakeContext*>(qp.context);
  if (!context.fake->spec.tells_of_pairs) return;
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &qp;
  tell(context, event);
}

// To the error state: all posted requests are flushed.
void FakeFabric::fail(FakeQueuePair& qp) {
  // An iWARP connection ends at both ends.
  const bool ends = qp.is_iwarp && qp.state == IBV_QPS_RTS;
  qp.state = IBV_QPS_ERR;
  qp.flying.clear();
  ibv_wc wc{};
  wc.status = IBV_WC_WR_FLUSH_ERR;
  wc.qp_num = qp.qp_num;
  for (const FakeWork& work : qp.sends) {
    wc.wr_id = work.request.wr_id;
    wc.opcode = completed(work.request.opcode);
    wc.vendor_err = 1 + std::exchange(qp.unsignalled, 0);
    complete(static_cast<FakeCompletionQueue&>(*qp.send_cq), wc);
  }
  qp.sends.clear();
  wc.vendor_err = 0;
  wc.opcode = IBV_WC_RECV;
  for (const FakeReceive& receive : qp.receives) {
    wc.wr_id = receive.id;
    complete(static_cast<FakeCompletionQueue&>(*qp.recv_cq), wc);
  }
  qp.receives.clear();
  const auto peer = ends ? queue_pairs_.find(qp.to.dest_qp_num) : queue_pairs_.end();
  if (peer != queue_pairs_.end()) fail(*peer->second);
}

void FakeFabric::complete(FakeCompletionQueue& cq, const ibv_wc& wc) {
  if (cq.waiting.size() == static_cast<std::size_t>(cq.cqe)) note("a completion queue overran");
  cq.waiting.push_back(wc);
}

}  // namespace ztcp::test
