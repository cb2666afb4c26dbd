// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// libibverbs.so.1 as ztcp calls it, with software NICs (nic.h) for devices: making and unmaking
// objects, posting and polling. Programs under test find it in LD_LIBRARY_PATH.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tests/support/verbs/soft_nic/nic.h"

namespace ztcp::soft_nic {
namespace {

using Lock = std::lock_guard<std::mutex>;

int refuse(int sys_errno) {
  errno = sys_errno;
  return sys_errno;
}

int misuse(const char* what, int sys_errno) {
  Nic::get().counters().note_misuse(what);
  return refuse(sys_errno);
}

// The devices of all processes in the folder; never destroyed.
const std::vector<Device*>& devices() {
  static const auto& all = *new std::vector<Device*>([] {
    std::vector<Device*> made;
    const Settings& settings = Nic::get().settings();
    if (settings.folder.empty()) return made;
    for (std::uint32_t i = 0; i < settings.devices; ++i) {
      auto* const device = new Device{};
      device->node_type = IBV_NODE_CA;
      device->transport_type = IBV_TRANSPORT_IB;
      fmt::format("soft{}", i).copy(device->name, sizeof device->name - 1);
      device->index = i;
      made.push_back(device);
    }
    return made;
  }());
  return all;
}

Device& device_of(ibv_context* context) { return static_cast<Device&>(*context->device); }

Work to_work(const ibv_send_wr& request) {
  Work work;
  work.request = request;
  if (request.num_sge > 0) work.piece = *request.sg_list;
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(work.piece.addr);
    work.bytes.assign(bytes, bytes + work.piece.length);
  }
  if (request.opcode != IBV_WR_RDMA_READ)
    work.packets = std::max(1U, (work.piece.length + kMtuBytes - 1) / kMtuBytes);
  return work;
}

// Why the request can't be posted; nullptr: it can.
const char* fault_of(const QueuePair& qp, const ibv_send_wr& request) {
  if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR)
    return "a send is posted before the queue pair may send";
  if (qp.outstanding == qp.cap.max_send_wr) return "more sends are posted than the queue holds";
  if (request.num_sge > 1) return "a send of more than one piece";
  const std::uint32_t size = request.num_sge > 0 ? request.sg_list->length : 0;
  switch (request.opcode) {
    case IBV_WR_RDMA_READ:
      if (qp.state == IBV_QPS_RTS && qp.to.max_rd_atomic == 0)
        return "a read by a queue pair that may have none under way";
      return size > kMtuBytes ? "a read of more than a packet" : nullptr;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND:
      return (request.send_flags & IBV_SEND_INLINE) != 0 && size > qp.cap.max_inline_data
                 ? "more bytes inline than the queue pair takes"
                 : nullptr;
    default:
      return "an operation that is none of ztcp's";
  }
}

int post_send(ibv_qp* to, ibv_send_wr* first, ibv_send_wr** bad) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  auto& qp = static_cast<QueuePair&>(*to);
  nic.counters().add(Count::kDoorbells);
  for (ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (const char* const fault = fault_of(qp, *wr)) return misuse(fault, EINVAL);
    Work work = to_work(*wr);
    work.first_psn = qp.next_psn;
    qp.next_psn += work.packets;
    qp.sends.push_back(std::move(work));
    ++qp.outstanding;
  }
  if (qp.state == IBV_QPS_ERR)
    nic.fail(qp);
  else
    nic.ring();
  return 0;
}

int post_recv(ibv_qp* to, ibv_recv_wr* first, ibv_recv_wr** bad) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  auto& qp = static_cast<QueuePair&>(*to);
  for (ibv_recv_wr* wr = first; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (qp.state == IBV_QPS_RESET)
      return misuse("a receive is posted to a queue pair that was reset", EINVAL);
    if (qp.receives.size() == qp.cap.max_recv_wr)
      return misuse("more receives are posted than the queue holds", ENOMEM);
    if (wr->num_sge > 1) return misuse("more than one piece", EINVAL);
    qp.receives.push_back({wr->wr_id, wr->num_sge > 0 ? *wr->sg_list : ibv_sge{}});
  }
  if (qp.state == IBV_QPS_ERR) nic.fail(qp);
  return 0;
}

int poll_cq(ibv_cq* from, int most, ibv_wc* out) {
  auto& queue = static_cast<CompletionQueue&>(*from);
  if (queue.count.load(std::memory_order_acquire) == 0) return 0;
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  int count = 0;
  for (; count < most && !queue.waiting.empty(); ++count) {
    const CompletionQueue::Waiting& one = queue.waiting.front();
    out[count] = one.completion;
    if (QueuePair* const qp = nic.find(one.completion.qp_num)) qp->outstanding -= one.sends;
    queue.waiting.pop_front();
  }
  queue.count.store(queue.waiting.size(), std::memory_order_release);
  return count;
}

// The state transitions of the specification (IBA table 91), for RC only.
bool take_step(QueuePair& qp, const ibv_qp_attr& to, int mask) {
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  constexpr int kReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr int kSend = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  if (qp.state == IBV_QPS_RESET && to.qp_state == IBV_QPS_INIT && mask == kInit) {
    if (to.port_num != 1 || to.pkey_index != 0) return false;
    qp.to.qp_access_flags = to.qp_access_flags;
    return true;
  }
  if (qp.state == IBV_QPS_INIT && to.qp_state == IBV_QPS_RTR && mask == kReceive) {
    qp.to.dest_qp_num = to.dest_qp_num;
    qp.to.ah_attr = to.ah_attr;
    qp.to.max_dest_rd_atomic = to.max_dest_rd_atomic;
    qp.expected_psn = to.rq_psn;
    return true;
  }
  if (qp.state == IBV_QPS_RTR && to.qp_state == IBV_QPS_RTS && mask == kSend) {
    qp.to.timeout = to.timeout;
    qp.to.max_rd_atomic = to.max_rd_atomic;
    qp.retries_left = qp.to.retry_cnt = to.retry_cnt;
    qp.not_ready_left = qp.to.rnr_retry = to.rnr_retry;
    qp.next_psn = to.sq_psn;
    qp.acked_psn = to.sq_psn - 1;
    return true;
  }
  return false;
}

// NIC threads still run: only the counters are read.
__attribute__((destructor)) void say_counts() {
  Nic& nic = Nic::get();
  if (!nic.settings().folder.empty()) nic.counters().write_to(nic.settings().folder);
}

}  // namespace
}  // namespace ztcp::soft_nic

using namespace ztcp::soft_nic;  // NOLINT(google-build-using-namespace)

#pragma GCC visibility push(default)
extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  const std::vector<Device*>& all = devices();
  auto** const list = new ibv_device*[all.size() + 1]();
  std::copy(all.begin(), all.end(), list);
  *count = static_cast<int>(all.size());
  return list;
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }

ibv_context* ibv_open_device(ibv_device* device) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  if (!nic.start()) return nullptr;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return nullptr;
  auto* const context = new Context{};
  context->device = device;
  context->async_fd = ends[0];
  context->event_pipe = ends[1];
  context->cmd_fd = -1;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  nic.add(*context);
  return context;
}
int ibv_close_device(ibv_context* context) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  auto* const ours = static_cast<Context*>(context);
  nic.remove(*ours);
  close(ours->async_fd);
  close(ours->event_pipe);
  delete ours;
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  *out = {};
  out->max_qp_wr = 8192;
  out->max_cqe = 65536;
  out->max_mr_size = ~0ULL;
  out->node_guid = 0x50f70 + device_of(context).index;
  out->phys_port_cnt = 1;
  return 0;
}
// InfiniBand, because for Ethernet the kernel has the GIDs' types, and it has none of these
// devices.
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* to) {
  if (port != 1) return refuse(EINVAL);
  auto* const out = reinterpret_cast<ibv_port_attr*>(to);
  const Device& device = device_of(context);
  out->state = device.is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  out->max_mtu = out->active_mtu = IBV_MTU_4096;
  out->gid_tbl_len = 1;
  out->max_msg_sz = 1U << 31U;
  out->lid = device.lid();
  out->active_width = 2;   // 4x
  out->active_speed = 32;  // 25 Gb/s a lane.
  out->link_layer = IBV_LINK_LAYER_INFINIBAND;
  return 0;
}
int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
  if (port != 1 || index != 0) return refuse(EINVAL);
  *out = {};
  out->raw[0] = 0xfe;
  out->raw[1] = 0x80;
  out->raw[15] = static_cast<std::uint8_t>(device_of(context).index + 1);
  return 0;
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* out) {
  std::array<int, 2> told{};
  if (read(context->async_fd, told.data(), sizeof told) != sizeof told) return -1;
  *out = {};
  out->event_type = static_cast<ibv_event_type>(told[0]);
  out->element.port_num = told[1];
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) {}
const char* ibv_event_type_str(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ERR:
      return "port error";
    case IBV_EVENT_PORT_ACTIVE:
      return "port active";
    default:
      return "local catastrophic error";
  }
}

ibv_pd* ibv_alloc_pd(ibv_context* context) { return new ibv_pd{context, 0}; }
int ibv_dealloc_pd(ibv_pd* domain) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  if (nic.has_any_of(domain))
    return misuse("a domain goes before its memory or its queue pairs", EBUSY);
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t size, std::uint64_t,
                         unsigned access) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  return nic.memory().add(domain, reinterpret_cast<std::uint64_t>(address), size, access);
}
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t size, int access) {
  return ibv_reg_mr_iova2(domain, address, size, 0, static_cast<unsigned>(access));
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t size,
                          std::uint64_t iova, int fd, int access) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  return nic.memory().add_dmabuf(domain, offset, size, iova, fd, static_cast<unsigned>(access));
}
int ibv_dereg_mr(ibv_mr* memory) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  nic.memory().remove(static_cast<Memory*>(memory));
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int depth, void*, ibv_comp_channel*, int) {
  auto* const queue = new CompletionQueue{};
  queue->context = context;
  queue->cqe = depth;
  return queue;
}
int ibv_destroy_cq(ibv_cq* cq) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  auto* const queue = static_cast<CompletionQueue*>(cq);
  if (queue->queue_pairs != 0) return misuse("a CQ goes before its queue pairs", EBUSY);
  delete queue;
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  constexpr std::uint32_t kMostInline = 220;
  if (wanted->qp_type != IBV_QPT_RC || wanted->cap.max_inline_data > kMostInline)
    return errno = EINVAL, nullptr;
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  auto* const qp = new QueuePair{};
  qp->context = domain->context;
  qp->pd = domain;
  qp->send_cq = wanted->send_cq;
  qp->recv_cq = wanted->recv_cq;
  qp->cap = wanted->cap;
  qp->state = IBV_QPS_RESET;
  qp->qp_type = IBV_QPT_RC;
  for (ibv_cq* cq : {qp->send_cq, qp->recv_cq}) ++static_cast<CompletionQueue*>(cq)->queue_pairs;
  nic.add(*qp);
  return qp;
}
int ibv_modify_qp(ibv_qp* of, ibv_qp_attr* to, int mask) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  auto& qp = static_cast<QueuePair&>(*of);
  if (to->qp_state == IBV_QPS_ERR) {
    nic.fail(qp);
    return 0;
  }
  if (!take_step(qp, *to, mask)) return misuse("a queue pair takes a step that it can't", EINVAL);
  qp.state = to->qp_state;
  return 0;
}
int ibv_destroy_qp(ibv_qp* of) {
  Nic& nic = Nic::get();
  const Lock lock(nic.mutex());
  auto* const qp = static_cast<QueuePair*>(of);
  nic.remove(*qp);
  for (ibv_cq* cq : {qp->send_cq, qp->recv_cq}) --static_cast<CompletionQueue*>(cq)->queue_pairs;
  delete qp;
  return 0;
}
int ibv_fork_init() { return 0; }

}  // extern "C"
#pragma GCC visibility pop
