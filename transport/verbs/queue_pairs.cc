// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/queue_pairs.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <endian.h>

#include <fmt/format.h>

#include "transport/verbs/session/sent_work.h"

namespace ztcp::verbs {
namespace {

// Packet numbers begin where none is near the wrap; RC asks for nothing more (IBA 9.7.2).
constexpr std::uint32_t kFirstPsn = 0x5a;
constexpr std::uint8_t kHops = 255;
// A receiver that is not ready is asked again after 0.64 ms (IBA table 45): receives are always
// posted ahead, so it happens while queue pairs are joined alone.
constexpr std::uint8_t kMinRnrTimer = 12;

tl::unexpected<Refusal> refused(const char* call, int sys_errno, const char* advice) {
  return tl::unexpected(Refusal{{Errc::kSystem, sys_errno, call},
                                fmt::format("{}: {}{}", call, std::strerror(sys_errno), advice)});
}

}  // namespace

Made<std::unique_ptr<QueuePairs>> QueuePairs::create(const Device& device,
                                                     const QueuePairSettings& settings) {
  std::unique_ptr<QueuePairs> out(new QueuePairs(device, settings));
  out->opened_ = device.opened;
  const Api& api = *device.opened->api;
  // All that may be posted, so that it never overruns.
  const std::uint32_t depth = settings.count * (kSendDepth + settings.receive_depth);
  out->completions_ = CompletionQueueHandle(
      api.create_cq(device.opened->context.get(), static_cast<int>(depth), nullptr, nullptr, 0),
      {&api});
  if (!out->completions_)
    return refused("ibv_create_cq", errno,
                   "; look at ulimit -l, and at max_cq in ibv_devinfo -v: each connection has one");
  for (std::uint32_t i = 0; i < settings.count; ++i)
    if (auto made = out->create_pair(i); !made) return tl::unexpected(std::move(made.error()));
  return out;
}

Made<void> QueuePairs::create_pair(std::uint32_t index) {
  const Api& api = *opened_->api;
  ibv_qp* made = nullptr;
  // Some devices take fewer bytes inline, or none.
  while (true) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions_.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = kSendDepth;
    wanted.cap.max_recv_wr = settings_.receive_depth;
    wanted.cap.max_send_sge = 1;
    wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = inline_bytes_;
    made = api.create_qp(opened_->domain.get(), &wanted);
    if (made != nullptr || inline_bytes_ == 0 || index != 0) break;
    inline_bytes_ /= 2;
  }
  if (made == nullptr)
    return refused("ibv_create_qp", errno,
                   "; look at ulimit -l, and at max_qp in ibv_devinfo -v: each connection has one");
  pairs_[index] = QueuePairHandle(made, {&api});
  ++count_;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.pkey_index = device_.pkey_index;
  to.port_num = device_.port;
  to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int error = api.modify_qp(made, &to, mask); error != 0)
    return refused("ibv_modify_qp to INIT", error, "; is the partition key's index right?");
  return {};
}

void QueuePairs::tell(RailFacts& facts) const {
  facts.gid = device_.gid.gid;
  facts.lid = device_.lid;
  facts.is_infiniband = device_.is_infiniband ? 1 : 0;
  facts.mtu = static_cast<std::uint8_t>(std::countr_zero(device_.mtu_bytes) - 7);
  facts.first_psn = kFirstPsn;
  facts.queue_pairs = static_cast<std::uint8_t>(count_);
  for (std::uint32_t i = 0; i < count_; ++i) facts.numbers[i] = pairs_[i]->qp_num;
  device_.hca.copy(facts.device.data(), facts.device.size() - 1);
}

Made<void> QueuePairs::join(const RailFacts& peer) {
  const Api& api = *opened_->api;
  count_ = std::min<std::uint32_t>(count_, peer.queue_pairs);
  for (std::uint32_t i = 0; i < count_; ++i) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu =
        static_cast<ibv_mtu>(std::min<int>(std::countr_zero(device_.mtu_bytes) - 7, peer.mtu));
    to.dest_qp_num = peer.numbers[i];
    to.rq_psn = peer.first_psn;
    to.max_dest_rd_atomic = 1;
    to.min_rnr_timer = kMinRnrTimer;
    to.ah_attr.port_num = device_.port;
    to.ah_attr.sl = device_.service_level;
    to.ah_attr.dlid = peer.lid;
    // Ethernet has nothing else; InfiniBand needs it between subnets.
    const bool is_of_other_subnet =
        !std::equal(peer.gid.begin(), peer.gid.begin() + 8, device_.gid.gid.begin());
    if (!device_.is_infiniband || is_of_other_subnet) {
      to.ah_attr.is_global = 1;
      std::copy(peer.gid.begin(), peer.gid.end(), std::begin(to.ah_attr.grh.dgid.raw));
      to.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_.gid.index);
      to.ah_attr.grh.hop_limit = kHops;
      to.ah_attr.grh.traffic_class = settings_.traffic_class;
    }
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (const int error = api.modify_qp(pairs_[i].get(), &to, mask); error != 0)
      return refused("ibv_modify_qp to RTR", error,
                     "; can this host reach the peer's GID? Both must be of one network and type");
    to = {};
    to.qp_state = IBV_QPS_RTS;
    to.timeout = device_.timeout;
    to.retry_cnt = device_.retries;
    to.rnr_retry = device_.rnr_retries;
    to.sq_psn = kFirstPsn;
    to.max_rd_atomic = 1;
    mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
    if (const int error = api.modify_qp(pairs_[i].get(), &to, mask); error != 0)
      return refused("ibv_modify_qp to RTS", error, "");
  }
  return {};
}

void QueuePairs::abort() {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_ERR;
  for (std::uint32_t i = 0; i < count_; ++i)
    opened_->api->modify_qp(pairs_[i].get(), &to, IBV_QP_STATE);
}

std::uint32_t QueuePairs::index_of(std::uint32_t number) const {
  std::uint32_t index = 0;
  while (index < count_ && pairs_[index]->qp_num != number) ++index;
  return index;
}

Status QueuePairs::post(std::uint32_t queue_pair, std::span<const WorkRequest> requests) {
  constexpr std::size_t kMost = 16;
  assert(requests.size() <= kMost);
  std::array<ibv_send_wr, kMost> works;
  std::array<ibv_sge, kMost> pieces;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const WorkRequest& from = requests[i];
    pieces[i] = {reinterpret_cast<std::uint64_t>(from.local), from.size_bytes, from.lkey};
    ibv_send_wr& to = works[i];
    to = {};
    to.wr_id = from.id;
    to.next = i + 1 < requests.size() ? &works[i + 1] : nullptr;
    to.sg_list = &pieces[i];
    to.num_sge = from.size_bytes > 0 ? 1 : 0;
    to.opcode = IBV_WR_RDMA_WRITE;
    if (from.kind == WorkRequest::Kind::kWriteImmediate) {
      to.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      to.imm_data = htobe32(from.immediate);
    }
    to.send_flags = (from.is_signalled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
                    (from.is_inline ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U);
    to.wr.rdma.remote_addr = from.remote;
    to.wr.rdma.rkey = from.rkey;
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(pairs_[queue_pair].get(), works.data(), &bad); error != 0)
    return fail(Errc::kSystem, "ibv_post_send", error);
  return {};
}

Status QueuePairs::post_receives(std::uint32_t queue_pair, std::uint32_t count) {
  constexpr std::uint32_t kMost = 64;
  std::array<ibv_recv_wr, kMost> works{};
  while (count > 0) {
    const std::uint32_t now = std::min(count, kMost);
    for (std::uint32_t i = 0; i < now; ++i) {
      works[i].wr_id = kReceiveId;
      works[i].next = i + 1 < now ? &works[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(pairs_[queue_pair].get(), works.data(), &bad); error != 0)
      return fail(Errc::kSystem, "ibv_post_recv", error);
    receives_out_ += now;
    count -= now;
  }
  return {};
}

Status QueuePairs::post_read(std::byte* to, std::uint32_t lkey, const std::byte* from,
                             std::uint32_t rkey, std::uint64_t id) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(to), 1, lkey};
  ibv_send_wr work{};
  work.wr_id = id;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_READ;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(from);
  work.wr.rdma.rkey = rkey;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(pairs_[0].get(), &work, &bad); error != 0)
    return fail(Errc::kSystem, "ibv_post_send", error);
  return {};
}

}  // namespace ztcp::verbs
