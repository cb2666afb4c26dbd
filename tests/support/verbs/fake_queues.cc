// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tests/support/verbs/fake_calls.h"

namespace ztcp::test {
namespace {

// As libibverbs does (cmd_qp.c, cmd_cq.c): an object is destroyed only once each event read of it
// is acknowledged. The wait is bounded, so that a test fails instead of hanging.
template <class Object>
void await_acknowledgements(const Object& object, std::unique_lock<std::mutex>& lock,
                            std::vector<std::string>& misuse) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::seconds(20);
  while (object.events_told != object.events_acked && steady_clock::now() < end) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  if (object.events_told != object.events_acked)
    misuse.emplace_back("destroyed before its event is acknowledged: libibverbs waits for ever");
}

bool is_dead(const ibv_context* context) {
  return static_cast<const FakeContext*>(context)->fake->is_dead;
}

// The kernel's demands on an address handle before a queue pair may receive: for RoCE it resolves
// the peer's MAC address, for which the port must be up.
int check_address(const ibv_qp* qp, const ibv_ah_attr& to) {
  const auto& ports = static_cast<FakeContext*>(qp->context)->fake->spec.ports;
  if (to.port_num == 0 || to.port_num > ports.size()) return EINVAL;
  const FakePort& port = ports[to.port_num - 1U];
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET) return to.is_global || to.dlid != 0 ? 0 : EINVAL;
  if (to.is_global == 0 || to.grh.sgid_index >= port.gids.size()) return EINVAL;
  constexpr ibv_gid kNone{};
  const ibv_gid& from = port.gids[to.grh.sgid_index];
  if (std::memcmp(&from, &kNone, sizeof kNone) == 0) return EINVAL;
  return port.state == IBV_PORT_ACTIVE ? 0 : ENETUNREACH;
}

}  // namespace

ibv_cq* FakeCalls::create_cq(ibv_context* context, int depth, void*, ibv_comp_channel*, int) {
  FakeFabric& fabric = fabric_of(context);
  const Lock lock(fabric.mutex_);
  if (const int error = fabric.refusal_of("ibv_create_cq")) return errno = error, nullptr;
  if (is_dead(context)) return errno = EIO, nullptr;
  const FakeDeviceSpec& spec = static_cast<FakeContext*>(context)->fake->spec;
  if (depth <= 0 || depth > spec.max_cqe) return errno = EINVAL, nullptr;
  auto* const cq = new FakeCompletionQueue{};
  cq->context = context;
  cq->cqe = depth;
  ++fabric.live_["cq"];
  return cq;
}

int FakeCalls::destroy_cq(ibv_cq* cq) {
  FakeFabric& fabric = fabric_of(cq->context);
  std::unique_lock lock(fabric.mutex_);
  auto* const fake = static_cast<FakeCompletionQueue*>(cq);
  await_acknowledgements(*fake, lock, fabric.misuse_);
  if (fake->queue_pairs != 0) return fabric.note("a CQ goes before its queue pairs"), EBUSY;
  --fabric.live_["cq"];
  delete fake;
  return 0;
}

ibv_qp* FakeCalls::create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
  FakeFabric& fabric = fabric_of(pd->context);
  const Lock lock(fabric.mutex_);
  if (const int error = fabric.refusal_of("ibv_create_qp")) return errno = error, nullptr;
  if (is_dead(pd->context)) return errno = EIO, nullptr;
  const FakeDeviceSpec& spec = static_cast<FakeContext*>(pd->context)->fake->spec;
  const auto most = static_cast<std::uint32_t>(spec.max_qp_wr);
  if (wanted->cap.max_inline_data > spec.max_inline || wanted->qp_type != IBV_QPT_RC ||
      wanted->cap.max_send_wr > most || wanted->cap.max_recv_wr > most ||
      wanted->cap.max_send_sge > spec.max_sge || wanted->cap.max_recv_sge > spec.max_sge)
    return errno = EINVAL, nullptr;
  if (!spec.has_rc) return errno = EOPNOTSUPP, nullptr;
  auto* const qp = new FakeQueuePair{};
  qp->context = pd->context;
  qp->pd = pd;
  qp->send_cq = wanted->send_cq;
  qp->recv_cq = wanted->recv_cq;
  qp->cap = wanted->cap;
  qp->qp_num = fabric.next_number_++;
  qp->state = IBV_QPS_RESET;
  qp->qp_type = IBV_QPT_RC;
  qp->is_iwarp = spec.is_iwarp;
  for (ibv_cq* cq : {qp->send_cq, qp->recv_cq})
    ++static_cast<FakeCompletionQueue*>(cq)->queue_pairs;
  fabric.queue_pairs_[qp->qp_num] = qp;
  ++fabric.live_["qp"];
  return qp;
}

int FakeCalls::modify_qp(ibv_qp* qp, ibv_qp_attr* to, int mask) {
  FakeFabric& fabric = fabric_of(qp->context);
  const Lock lock(fabric.mutex_);
  auto* const fake = static_cast<FakeQueuePair*>(qp);
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  constexpr int kReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr int kSend = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  constexpr int kIwarp = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  const auto is_step = [&](ibv_qp_state from, ibv_qp_state into, int needed) {
    return fake->state == from && to->qp_state == into && mask == needed;
  };
  if (is_dead(qp->context)) return refuse(EIO);
  if (to->qp_state == IBV_QPS_ERR) {
    fabric.fail(*fake);
    return 0;
  }
  if (const int error = fabric.refusal_of("ibv_modify_qp")) return refuse(error);
  const std::uint8_t reads = static_cast<FakeContext*>(qp->context)->fake->spec.max_reads;
  if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && to->max_rd_atomic > reads) ||
      ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && to->max_dest_rd_atomic > reads))
    return refuse(EINVAL);
  if (fake->is_iwarp && is_step(IBV_QPS_RESET, IBV_QPS_INIT, kIwarp)) {
    fake->to.port_num = 1;
    fake->to.qp_access_flags = to->qp_access_flags;
  } else if (fake->is_iwarp) {
    fabric.note("a queue pair of iWARP is told to take a state that its connection gives it");
    return refuse(EINVAL);
  } else if (is_step(IBV_QPS_RESET, IBV_QPS_INIT, kInit)) {
    fake->to.port_num = to->port_num;
    fake->to.qp_access_flags = to->qp_access_flags;
  } else if (is_step(IBV_QPS_INIT, IBV_QPS_RTR, kReceive)) {
    if (const int error = check_address(qp, to->ah_attr); error != 0) return refuse(error);
    fake->to.dest_qp_num = to->dest_qp_num;
    fake->to.ah_attr = to->ah_attr;
    fake->to.path_mtu = to->path_mtu;
    fake->to.max_dest_rd_atomic = to->max_dest_rd_atomic;
    fake->to.rq_psn = to->rq_psn;
  } else if (is_step(IBV_QPS_RTR, IBV_QPS_RTS, kSend)) {
    fake->to.timeout = to->timeout;
    fake->to.retry_cnt = to->retry_cnt;
    fake->to.rnr_retry = to->rnr_retry;
    fake->to.sq_psn = to->sq_psn;
    fake->to.max_rd_atomic = to->max_rd_atomic;
  } else {
    fabric.note(fmt::format("modify_qp from {} to {} with {:#x}", static_cast<int>(fake->state),
                            static_cast<int>(to->qp_state), mask));
    return refuse(EINVAL);
  }
  fake->state = to->qp_state;
  return 0;
}

// As libmlx5: after the negotiation this returns the options set.
int FakeCalls::query_ece(ibv_qp* qp, ibv_ece* out) {
  const Lock lock(fabric_of(qp->context).mutex_);
  const auto& fake = *static_cast<FakeQueuePair*>(qp);
  const FakeDeviceSpec& spec = static_cast<FakeContext*>(qp->context)->fake->spec;
  if (spec.ece_vendor == 0) return EOPNOTSUPP;
  const std::uint32_t before = fake.ece ? 0 : spec.ece_options;
  *out = {.vendor_id = spec.ece_vendor,
          .options = fake.state == IBV_QPS_INIT ? before : fake.ece.value_or(0),
          .comp_mask = 0};
  return 0;
}

int FakeCalls::set_ece(ibv_qp* qp, ibv_ece* ece) {
  FakeFabric& fabric = fabric_of(qp->context);
  const Lock lock(fabric.mutex_);
  auto& fake = *static_cast<FakeQueuePair*>(qp);
  const FakeDeviceSpec& spec = static_cast<FakeContext*>(qp->context)->fake->spec;
  if (spec.ece_vendor == 0) return EOPNOTSUPP;
  if (ece->vendor_id != spec.ece_vendor || ece->comp_mask != 0) return EINVAL;
  if (fake.state != IBV_QPS_INIT) return fabric.note("ECE is set after INIT"), EINVAL;
  fake.ece = ece->options & spec.ece_options;
  return 0;
}

int FakeCalls::destroy_qp(ibv_qp* qp) {
  FakeFabric& fabric = fabric_of(qp->context);
  std::unique_lock lock(fabric.mutex_);
  auto* const fake = static_cast<FakeQueuePair*>(qp);
  await_acknowledgements(*fake, lock, fabric.misuse_);
  if (fake->is_iwarp) fabric.fail(*fake);
  fabric.queue_pairs_.erase(qp->qp_num);
  for (ibv_cq* cq : {qp->send_cq, qp->recv_cq})
    --static_cast<FakeCompletionQueue*>(cq)->queue_pairs;
  --fabric.live_["qp"];
  delete fake;
  return 0;
}

int FakeCalls::post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  FakeFabric& fabric = fabric_of(qp->context);
  const Lock lock(fabric.mutex_);
  auto* const fake = static_cast<FakeQueuePair*>(qp);
  ++counts_of(qp->context).doorbells;
  const FakeDeviceSpec& spec = static_cast<FakeContext*>(qp->context)->fake->spec;
  if (const int error = fabric.refusal_of("ibv_post_send " + spec.name)) return *bad = first, error;
  if (spec.refuses_after_failure && fake->state == IBV_QPS_ERR) return *bad = first, -EIO;
  for (ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
    *bad = wr;
    ++counts_of(qp->context).works;
    if (fake->state != IBV_QPS_RTS && fake->state != IBV_QPS_ERR)
      return fabric.note("a send is posted before the queue pair may send"), EINVAL;
    if (fake->outstanding == fake->cap.max_send_wr)
      return fabric.note("more sends are posted than the queue holds"), ENOMEM;
    if (wr->num_sge > 1) return fabric.note("more than one piece"), EINVAL;
    if (fake->is_iwarp && wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
      return fabric.note("iWARP has no write with an immediate"), EINVAL;
    FakeWork work{*wr, wr->num_sge > 0 ? *wr->sg_list : ibv_sge{}, {}};
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
      if (work.piece.length > fake->cap.max_inline_data)
        return fabric.note("more bytes inline than the queue pair takes"), EINVAL;
      const auto* const bytes = reinterpret_cast<const std::byte*>(work.piece.addr);
      work.bytes.assign(bytes, bytes + work.piece.length);
    }
    ++fake->outstanding;
    fake->sends.push_back(std::move(work));
  }
  if (fake->state == IBV_QPS_ERR) fabric.fail(*fake);
  return 0;
}

int FakeCalls::post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  FakeFabric& fabric = fabric_of(qp->context);
  const Lock lock(fabric.mutex_);
  auto* const fake = static_cast<FakeQueuePair*>(qp);
  ++counts_of(qp->context).receive_doorbells;
  const std::string& name = static_cast<FakeContext*>(qp->context)->fake->spec.name;
  for (ibv_recv_wr* wr = first; wr != nullptr; wr = wr->next) {
    *bad = wr;
    // The first of a list is still taken.
    const int error = fabric.refusal_of("ibv_post_recv " + name);
    if (error != 0 && (wr != first || wr->next == nullptr)) return error;
    ++counts_of(qp->context).receives;
    if (fake->state == IBV_QPS_RESET)
      return fabric.note("a receive is posted to a queue pair that was reset"), EINVAL;
    if (fake->receives.size() == fake->cap.max_recv_wr)
      return fabric.note("more receives are posted than the queue holds"), ENOMEM;
    if (wr->num_sge > 1) return fabric.note("more than one piece"), EINVAL;
    if (fake->is_iwarp && wr->num_sge == 0)
      return fabric.note("a receive of iWARP's without memory"), EINVAL;
    fake->receives.push_back({wr->wr_id, wr->num_sge > 0 ? *wr->sg_list : ibv_sge{}});
  }
  if (fake->state == IBV_QPS_ERR) fabric.fail(*fake);
  return 0;
}

int FakeCalls::poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
  FakeFabric& fabric = fabric_of(cq->context);
  const Lock lock(fabric.mutex_);
  fabric.step();
  auto* const fake = static_cast<FakeCompletionQueue*>(cq);
  int count = 0;
  for (; count < most && !fake->waiting.empty(); ++count) {
    out[count] = fake->waiting.front();
    fake->waiting.pop_front();
    // vendor_err, a field of the device's own, has the number of sends it completes.
    const auto qp = fabric.queue_pairs_.find(out[count].qp_num);
    if (qp != fabric.queue_pairs_.end()) qp->second->outstanding -= out[count].vendor_err;
    out[count].vendor_err = out[count].status == IBV_WC_SUCCESS ? 0 : 0x81;
  }
  counts_of(cq->context).completions += count;
  return count;
}

}  // namespace ztcp::test
