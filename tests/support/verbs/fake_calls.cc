// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The table: making and unmaking objects, and what is asked of them.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tests/support/verbs/fake_fabric.h"

namespace ztcp::test {
namespace {

FakeFabric* g_fabric = nullptr;

int refuse(int sys_errno) {
  errno = sys_errno;
  return sys_errno;
}

FakeFabric& fabric_of(ibv_context* context) { return *static_cast<FakeContext*>(context)->fabric; }

// Nobody but a device reaches it.
bool is_gpu(void* address) {
  std::byte byte{};
  const iovec to{&byte, 1};
  const iovec from{address, 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT;
}

}  // namespace

struct FakeCalls {
  using Lock = std::lock_guard<std::mutex>;

  static ibv_device** get_device_list(int* count) {
    const Lock lock(g_fabric->mutex_);
    const auto& devices = g_fabric->devices_;
    auto** const list = new ibv_device*[devices.size() + 1];
    std::transform(devices.begin(), devices.end(), list,
                   [](const auto& one) -> ibv_device* { return one.get(); });
    list[devices.size()] = nullptr;
    *count = static_cast<int>(devices.size());
    return list;
  }
  static void free_device_list(ibv_device** list) { delete[] list; }

  static ibv_context* open_device(ibv_device* device) {
    auto* const fake = static_cast<FakeDevice*>(device);
    if (!fake->spec.may_open) return errno = EACCES, nullptr;
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return nullptr;
    auto* const context = new FakeContext{};
    context->device = device;
    context->fake = fake;
    context->fabric = g_fabric;
    context->async_fd = ends[0];
    context->event_pipe = ends[1];
    context->cmd_fd = -1;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.poll_cq = poll_cq;
    const Lock lock(g_fabric->mutex_);
    g_fabric->contexts_.push_back(context);
    ++g_fabric->live_["context"];
    return context;
  }
  static int close_device(ibv_context* context) {
    auto* const fake = static_cast<FakeContext*>(context);
    FakeFabric& fabric = fabric_of(context);
    const Lock lock(fabric.mutex_);
    std::erase(fabric.contexts_, fake);
    --fabric.live_["context"];
    close(fake->async_fd);
    close(fake->event_pipe);
    delete fake;
    return 0;
  }

  static int query_device(ibv_context* context, ibv_device_attr* out) {
    *out = {};
    out->max_qp_wr = 8192;
    out->max_cqe = 65536;
    out->max_mr_size = ~0ULL;
    out->node_guid = 0x5a00 + static_cast<FakeContext*>(context)->fake->spec.name.size();
    out->phys_port_cnt =
        static_cast<std::uint8_t>(static_cast<FakeContext*>(context)->fake->spec.ports.size());
    return 0;
  }
  static int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out) {
    FakeFabric& fabric = fabric_of(context);
    const Lock lock(fabric.mutex_);
    const auto& ports = static_cast<FakeContext*>(context)->fake->spec.ports;
    if (port == 0 || port > ports.size()) return refuse(EINVAL);
    const FakePort& one = ports[port - 1U];
    *out = {};
    out->state = one.state;
    out->active_mtu = one.mtu;
    out->max_mtu = IBV_MTU_4096;
    out->lid = one.lid;
    out->link_layer = one.link_layer;
    out->active_width = one.width;
    out->active_speed = one.speed;
    out->gid_tbl_len = static_cast<int>(one.gids.size());
    out->max_msg_sz = 1U << 31U;
    return 0;
  }
  static int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
    const auto& ports = static_cast<FakeContext*>(context)->fake->spec.ports;
    if (port == 0 || port > ports.size()) return refuse(EINVAL);
    const auto& gids = ports[port - 1U].gids;
    if (index < 0 || static_cast<std::size_t>(index) >= gids.size()) return refuse(EINVAL);
    *out = gids[static_cast<std::size_t>(index)];
    return 0;
  }

  static int get_async_event(ibv_context* context, ibv_async_event* out) {
    std::array<int, 2> told{};
    if (read(context->async_fd, told.data(), sizeof told) != sizeof told) return -1;
    *out = {};
    out->event_type = static_cast<ibv_event_type>(told[0]);
    out->element.port_num = told[1];
    return 0;
  }
  static void ack_async_event(ibv_async_event*) {}
  static const char* event_type_str(ibv_event_type type) {
    switch (type) {
      case IBV_EVENT_DEVICE_FATAL:
        return "local catastrophic error";
      case IBV_EVENT_PORT_ERR:
        return "port error";
      case IBV_EVENT_PORT_ACTIVE:
        return "port active";
      default:
        return "another event";
    }
  }

  static ibv_pd* alloc_pd(ibv_context* context) {
    FakeFabric& fabric = fabric_of(context);
    const Lock lock(fabric.mutex_);
    ++fabric.live_["pd"];
    return new ibv_pd{context, 0};
  }
  static int dealloc_pd(ibv_pd* pd) {
    FakeFabric& fabric = fabric_of(pd->context);
    const Lock lock(fabric.mutex_);
    for (const auto& [key, memory] : fabric.memory_)
      if (memory->pd == pd) return fabric.note("a domain goes before its memory"), EBUSY;
    for (const auto& [number, qp] : fabric.queue_pairs_)
      if (qp->pd == pd) return fabric.note("a domain goes before its queue pairs"), EBUSY;
    --fabric.live_["pd"];
    delete pd;
    return 0;
  }

  static ibv_mr* add_memory(ibv_pd* pd, void* address, std::size_t size, unsigned access,
                            std::shared_ptr<MemoryRegion> region) {
    FakeFabric& fabric = fabric_of(pd->context);
    const Lock lock(fabric.mutex_);
    if (fabric.registration_errno_ != 0) return errno = fabric.registration_errno_, nullptr;
    auto* const memory = new FakeMemory{};
    memory->context = pd->context;
    memory->pd = pd;
    memory->addr = address;
    memory->length = size;
    memory->access = access;
    memory->iova = reinterpret_cast<std::uint64_t>(address);
    memory->region = std::move(region);
    // Never the same again, so that a stale one is seen.
    memory->lkey = memory->rkey = fabric.next_key_++;
    fabric.memory_[memory->lkey] = memory;
    ++fabric.live_["mr"];
    return memory;
  }
  static ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) {
    return reg_mr_iova2(pd, address, size, reinterpret_cast<std::uint64_t>(address),
                        static_cast<unsigned>(access));
  }
  static ibv_mr* reg_mr_iova2(ibv_pd* pd, void* address, std::size_t size, std::uint64_t,
                              unsigned access) {
    std::shared_ptr<MemoryRegion> region;
    if (is_gpu(address)) {
      if (!static_cast<FakeContext*>(pd->context)->fake->spec.has_peer_memory)
        return errno = EFAULT, nullptr;
      auto made =
          MemoryRegion::make({.address = address, .size_bytes = size, .kind = MemoryKind::kCuda});
      if (!made) return errno = EINVAL, nullptr;
      region = std::move(*made);
    }
    return add_memory(pd, address, size, access, std::move(region));
  }
  static ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size,
                               std::uint64_t iova, int fd, int access) {
    if (!static_cast<FakeContext*>(pd->context)->fake->spec.knows_dmabuf)
      return errno = EOPNOTSUPP, nullptr;
    if (fd < 0) return errno = EBADF, nullptr;
    // As the kernel has it: the page of the buffer is the page of the address.
    constexpr std::uint64_t kInPage = 4095;
    if ((offset & kInPage) != (iova & kInPage)) return errno = EINVAL, nullptr;
    auto* const address = reinterpret_cast<void*>(iova);
    auto made = MemoryRegion::make({.address = address,
                                    .size_bytes = size,
                                    .kind = MemoryKind::kCuda,
                                    .dmabuf_fd = fd,
                                    .offset = offset});
    if (!made) return errno = EINVAL, nullptr;
    return add_memory(pd, address, size, static_cast<unsigned>(access), std::move(*made));
  }
  static int dereg_mr(ibv_mr* mr) {
    FakeFabric& fabric = fabric_of(mr->context);
    const Lock lock(fabric.mutex_);
    fabric.memory_.erase(mr->lkey);
    --fabric.live_["mr"];
    delete static_cast<FakeMemory*>(mr);
    return 0;
  }

  static ibv_cq* create_cq(ibv_context* context, int depth, void*, ibv_comp_channel*, int) {
    FakeFabric& fabric = fabric_of(context);
    const Lock lock(fabric.mutex_);
    auto* const cq = new FakeCompletionQueue{};
    cq->context = context;
    cq->cqe = depth;
    ++fabric.live_["cq"];
    return cq;
  }
  static int destroy_cq(ibv_cq* cq) {
    FakeFabric& fabric = fabric_of(cq->context);
    const Lock lock(fabric.mutex_);
    auto* const fake = static_cast<FakeCompletionQueue*>(cq);
    if (fake->queue_pairs != 0) return fabric.note("a CQ goes before its queue pairs"), EBUSY;
    --fabric.live_["cq"];
    delete fake;
    return 0;
  }

  static ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
    FakeFabric& fabric = fabric_of(pd->context);
    const Lock lock(fabric.mutex_);
    const FakeDeviceSpec& spec = static_cast<FakeContext*>(pd->context)->fake->spec;
    if (wanted->cap.max_inline_data > spec.max_inline || wanted->qp_type != IBV_QPT_RC)
      return errno = EINVAL, nullptr;
    auto* const qp = new FakeQueuePair{};
    qp->context = pd->context;
    qp->pd = pd;
    qp->send_cq = wanted->send_cq;
    qp->recv_cq = wanted->recv_cq;
    qp->cap = wanted->cap;
    qp->qp_num = fabric.next_number_++;
    qp->state = IBV_QPS_RESET;
    qp->qp_type = IBV_QPT_RC;
    for (ibv_cq* cq : {qp->send_cq, qp->recv_cq})
      ++static_cast<FakeCompletionQueue*>(cq)->queue_pairs;
    fabric.queue_pairs_[qp->qp_num] = qp;
    ++fabric.live_["qp"];
    return qp;
  }
  static int modify_qp(ibv_qp* qp, ibv_qp_attr* to, int mask) {
    FakeFabric& fabric = fabric_of(qp->context);
    const Lock lock(fabric.mutex_);
    auto* const fake = static_cast<FakeQueuePair*>(qp);
    constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    constexpr int kReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    constexpr int kSend = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    const auto is_step = [&](ibv_qp_state from, ibv_qp_state into, int needed) {
      return fake->state == from && to->qp_state == into && mask == needed;
    };
    if (to->qp_state == IBV_QPS_ERR) {
      fabric.fail(*fake);
      return 0;
    }
    if (is_step(IBV_QPS_RESET, IBV_QPS_INIT, kInit)) {
      fake->to.port_num = to->port_num;
      fake->to.qp_access_flags = to->qp_access_flags;
    } else if (is_step(IBV_QPS_INIT, IBV_QPS_RTR, kReceive)) {
      fake->to.dest_qp_num = to->dest_qp_num;
      fake->to.ah_attr = to->ah_attr;
      fake->to.path_mtu = to->path_mtu;
      fake->to.rq_psn = to->rq_psn;
    } else if (is_step(IBV_QPS_RTR, IBV_QPS_RTS, kSend)) {
      fake->to.timeout = to->timeout;
      fake->to.retry_cnt = to->retry_cnt;
      fake->to.rnr_retry = to->rnr_retry;
      fake->to.sq_psn = to->sq_psn;
    } else {
      fabric.note(fmt::format("modify_qp from {} to {} with {:#x}", static_cast<int>(fake->state),
                              static_cast<int>(to->qp_state), mask));
      return refuse(EINVAL);
    }
    fake->state = to->qp_state;
    return 0;
  }
  static int destroy_qp(ibv_qp* qp) {
    FakeFabric& fabric = fabric_of(qp->context);
    const Lock lock(fabric.mutex_);
    auto* const fake = static_cast<FakeQueuePair*>(qp);
    fabric.queue_pairs_.erase(qp->qp_num);
    for (ibv_cq* cq : {qp->send_cq, qp->recv_cq})
      --static_cast<FakeCompletionQueue*>(cq)->queue_pairs;
    --fabric.live_["qp"];
    delete fake;
    return 0;
  }
  static int fork_init() { return 0; }

  static int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
    FakeFabric& fabric = fabric_of(qp->context);
    const Lock lock(fabric.mutex_);
    auto* const fake = static_cast<FakeQueuePair*>(qp);
    for (ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
      *bad = wr;
      if (fake->state != IBV_QPS_RTS && fake->state != IBV_QPS_ERR)
        return fabric.note("a send is posted before the queue pair may send"), EINVAL;
      if (fake->outstanding == fake->cap.max_send_wr)
        return fabric.note("more sends are posted than the queue holds"), ENOMEM;
      if (wr->num_sge > 1) return fabric.note("more than one piece"), EINVAL;
      FakeWork work{*wr, wr->num_sge > 0 ? *wr->sg_list : ibv_sge{}, {}, 0};
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
  static int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
    FakeFabric& fabric = fabric_of(qp->context);
    const Lock lock(fabric.mutex_);
    auto* const fake = static_cast<FakeQueuePair*>(qp);
    for (ibv_recv_wr* wr = first; wr != nullptr; wr = wr->next) {
      *bad = wr;
      if (fake->state == IBV_QPS_RESET)
        return fabric.note("a receive is posted to a queue pair that was reset"), EINVAL;
      if (fake->receives.size() == fake->cap.max_recv_wr)
        return fabric.note("more receives are posted than the queue holds"), ENOMEM;
      fake->receives.push_back(wr->wr_id);
    }
    if (fake->state == IBV_QPS_ERR) fabric.fail(*fake);
    return 0;
  }
  static int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
    FakeFabric& fabric = fabric_of(cq->context);
    const Lock lock(fabric.mutex_);
    fabric.step();
    auto* const fake = static_cast<FakeCompletionQueue*>(cq);
    int count = 0;
    for (; count < most && !fake->waiting.empty(); ++count) {
      out[count] = fake->waiting.front();
      fake->waiting.pop_front();
      // vendor_err has how many sends it completes; the field is the device's own.
      const auto qp = fabric.queue_pairs_.find(out[count].qp_num);
      if (qp != fabric.queue_pairs_.end()) qp->second->outstanding -= out[count].vendor_err;
      out[count].vendor_err = out[count].status == IBV_WC_SUCCESS ? 0 : 0x81;
    }
    return count;
  }

  static const verbs::Api& table() {
    static const verbs::Api kTable{.get_device_list = get_device_list,
                                   .free_device_list = free_device_list,
                                   .open_device = open_device,
                                   .close_device = close_device,
                                   .query_device = query_device,
                                   .query_port = query_port,
                                   .query_gid = query_gid,
                                   .get_async_event = get_async_event,
                                   .ack_async_event = ack_async_event,
                                   .event_type_str = event_type_str,
                                   .alloc_pd = alloc_pd,
                                   .dealloc_pd = dealloc_pd,
                                   .reg_mr = reg_mr,
                                   .dereg_mr = dereg_mr,
                                   .create_cq = create_cq,
                                   .destroy_cq = destroy_cq,
                                   .create_qp = create_qp,
                                   .modify_qp = modify_qp,
                                   .destroy_qp = destroy_qp,
                                   .fork_init = fork_init,
                                   .reg_dmabuf_mr = reg_dmabuf_mr,
                                   .reg_mr_iova2 = reg_mr_iova2};
    return kTable;
  }
};

const verbs::Api* FakeFabric::api() const { return &FakeCalls::table(); }

FakeFabric::FakeFabric(std::vector<FakeDeviceSpec> devices, std::uint64_t seed) : random_(seed) {
  for (FakeDeviceSpec& spec : devices) {
    auto device = std::make_unique<FakeDevice>();
    device->node_type = IBV_NODE_CA;
    device->transport_type = IBV_TRANSPORT_IB;
    std::strncpy(device->name, spec.name.c_str(), sizeof device->name - 1);
    device->spec = std::move(spec);
    devices_.push_back(std::move(device));
  }
  g_fabric = this;
}

FakeFabric::~FakeFabric() { g_fabric = nullptr; }

}  // namespace ztcp::test
