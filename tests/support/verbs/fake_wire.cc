// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the devices do: one work request after the other of each queue pair, of any queue pair next.
#include <algorithm>
#include <cstring>
#include <span>
#include <unistd.h>
#include <utility>

#include "tests/support/verbs/fake_fabric.h"

namespace ztcp::test {
namespace {

// Of a peer that does not answer, or is not ready: so often it is tried.
constexpr int kAttempts = 8;
constexpr unsigned kStepsAtOnce = 4;

ibv_wc_opcode completed(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_SEND) return IBV_WC_SEND;
  return opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
}

// What takes a receive at the other end.
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

// Of iWARP: what is sent is completed once it has left, and arrives some time after that, in order.
void FakeFabric::carry_on(FakeQueuePair& qp) {
  // One that is completed has been answered.
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

// What a connection manager does.
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

// Its completion says what came of it at the other end.
void FakeFabric::answer(FakeQueuePair& qp) {
  FakeWork& work = qp.sends.front();
  // The NIC sends it again after its timeout, which finds out whether the peer is there still.
  if (work.is_carried) {
    if (peer_of(qp) == nullptr) return finish(qp, IBV_WC_RETRY_EXC_ERR);
    if (!loses_acknowledgements_) finish(qp, IBV_WC_SUCCESS);
    return;
  }
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

// The memory of the first receive that is posted there.
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

// The bytes of one work request, there or back.
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
  // A read pushes everything before it that the device has written.
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
  // filled from its end on, line by line.
  constexpr std::size_t kLine = 128;
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
    if (FakeQueuePair* const peer = peer_of(qp)) fail(*peer);
  fail(qp);
}

// Into the error state: all that is posted comes back.
void FakeFabric::fail(FakeQueuePair& qp) {
  // The connection of iWARP's ends at both ends.
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

FakeContext& FakeFabric::context_of(const std::string& device) {
  return **std::find_if(contexts_.begin(), contexts_.end(),
                        [&](const FakeContext* one) { return one->fake->spec.name == device; });
}

void FakeFabric::fail_next_message(ibv_wc_status status) {
  const std::lock_guard lock(mutex_);
  next_failure_ = {std::nullopt, status};
}
void FakeFabric::fail_next(ibv_wr_opcode kind, ibv_wc_status status) {
  const std::lock_guard lock(mutex_);
  next_failure_ = {kind, status};
}
void FakeFabric::set_port_state(const std::string& device, int port, ibv_port_state state) {
  const std::lock_guard lock(mutex_);
  FakeContext& context = context_of(device);
  context.fake->spec.ports[static_cast<std::size_t>(port) - 1].state = state;
  tell_of_port(context, state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
               port);
}
void FakeFabric::raise(const std::string& device, ibv_event_type type, int port) {
  const std::lock_guard lock(mutex_);
  tell_of_port(context_of(device), type, port);
}
void FakeFabric::refuse_manager(int sys_errno) {
  const std::lock_guard lock(mutex_);
  manager_errno_ = sys_errno;
}
void FakeFabric::kill(const std::string& device, bool tells) {
  const std::lock_guard lock(mutex_);
  FakeContext& context = context_of(device);
  context.fake->is_dead = true;
  if (tells) tell_of_port(context, IBV_EVENT_DEVICE_FATAL, 1);
}
void FakeFabric::raise_of_pair(std::uint32_t number, ibv_event_type type) {
  const std::lock_guard lock(mutex_);
  FakeQueuePair* const pair = queue_pairs_.at(number);
  ibv_async_event event{};
  event.event_type = type;
  if (type == IBV_EVENT_CQ_ERR)
    event.element.cq = pair->send_cq;
  else
    event.element.qp = pair;
  tell(*static_cast<FakeContext*>(pair->context), event);
}
void FakeFabric::set_address(const std::string& device, std::vector<ibv_gid> gids,
                             std::uint16_t lid) {
  const std::lock_guard lock(mutex_);
  FakeContext& context = context_of(device);
  FakePort& port = context.fake->spec.ports.front();
  port.gids = std::move(gids);
  port.lid = lid;
  tell_of_port(context, IBV_EVENT_GID_CHANGE, 1);
  tell_of_port(context, IBV_EVENT_LID_CHANGE, 1);
}
void FakeFabric::refuse(const std::string& call, int sys_errno) {
  const std::lock_guard lock(mutex_);
  refusals_[call] = sys_errno;
}
std::vector<std::uint32_t> FakeFabric::pairs_of(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, pair] : queue_pairs_)
    if (static_cast<FakeContext*>(pair->context)->fake->spec.name == device)
      numbers.push_back(number);
  return numbers;
}
std::vector<std::optional<std::uint32_t>> FakeFabric::ece_of(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::optional<std::uint32_t>> out;
  for (const auto& [number, pair] : queue_pairs_)
    if (static_cast<FakeContext*>(pair->context)->fake->spec.name == device)
      out.push_back(pair->ece);
  return out;
}
int FakeFabric::carried_out(ibv_wr_opcode opcode) const {
  const std::lock_guard lock(mutex_);
  const auto found = carried_out_.find(opcode);
  return found == carried_out_.end() ? 0 : found->second;
}
FakeCounts FakeFabric::counts(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  return (*std::ranges::find_if(devices_,
                                [&](const auto& one) { return one->spec.name == device; }))
      ->counts;
}
int FakeFabric::live(const char* kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(kind);
  return found == live_.end() ? 0 : found->second;
}
std::vector<std::string> FakeFabric::misuse() const {
  const std::lock_guard lock(mutex_);
  return misuse_;
}

}  // namespace ztcp::test
