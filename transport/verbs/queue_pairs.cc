// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/queue_pairs.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <endian.h>

#include <fmt/format.h>

#include "core/process_mark.h"
#include "transport/verbs/session/sent_work.h"
#include "transport/verbs/session/slot.h"

namespace ztcp::verbs {
namespace {

// The first packet number, far from the wrap; RC has no other requirement (IBA 9.7.2).
constexpr std::uint32_t kFirstPsn = 0x5a;
constexpr std::uint8_t kHops = 255;
// The retry delay for a receiver that is not ready: 0.64 ms (IBA table 45). Receives are always
// posted ahead, so this happens only while queue pairs are joined.
constexpr std::uint8_t kMinRnrTimer = 12;

// "ibv_create_qp: Cannot allocate memory; look at ulimit -l, ..."
tl::unexpected<ReasonedError> refused(const char* call, int sys_errno, const char* advice) {
  return fail({Errc::kSystem, sys_errno, call},
              fmt::format("{}: {}{}", call, std::strerror(sys_errno), advice));
}

// Writes without a completion of their own.
ibv_send_wr write_of(const WorkRequest& request, ibv_sge& piece) {
  piece = {reinterpret_cast<std::uint64_t>(request.local), request.size_bytes, request.lkey};
  ibv_send_wr out{};
  out.sg_list = &piece;
  out.num_sge = request.size_bytes > 0 ? 1 : 0;
  out.opcode = IBV_WR_RDMA_WRITE;
  if (request.is_inline) out.send_flags = IBV_SEND_INLINE;
  out.wr.rdma.remote_addr = request.remote;
  out.wr.rdma.rkey = request.rkey;
  return out;
}

std::uint8_t told_type(GidType type) {
  if (type == GidType::kRoceV2) return RailFacts::kRoceV2;
  return type == GidType::kRoceV1 ? RailFacts::kRoceV1 : 0;
}

// Options of the vendor, such as selective retransmission on lossy RoCE. Absent: none.
std::optional<ibv_ece> ece_of(const Api& api, const Device& device, ibv_qp& pair) {
  ibv_ece out{};
  if (!device.has_ece || device.is_iwarp || api.query_ece == nullptr) return std::nullopt;
  if (api.query_ece(&pair, &out) != 0 || out.comp_mask != 0) return std::nullopt;
  return out;
}

}  // namespace

Result<std::unique_ptr<QueuePairs>, ReasonedError> QueuePairs::create(
    const Device& device, const PortAddress& address, const QueuePairSettings& settings) {
  std::unique_ptr<QueuePairs> out(new QueuePairs(device, address, settings));
  out->parts_.opened = device.opened;
  const Api& api = *device.opened->api;
  // Room for all work that may be posted, so that it never overruns.
  const std::uint32_t depth = settings.count * (out->send_depth() + settings.receive_depth);
  out->parts_.completions = CompletionQueueHandle(
      api.create_cq(device.opened->context.get(), static_cast<int>(depth), nullptr, nullptr, 0),
      {&api});
  if (!out->parts_.completions)
    return refused("ibv_create_cq", errno,
                   "; look at ulimit -l, and at max_cq in ibv_devinfo -v: each connection has one");
  for (std::uint32_t i = 0; i < settings.count; ++i) ZTCP_CHECK(out->create_pair(i));
  if (settings.takes_notifications) ZTCP_CHECK(out->create_notifications());
  if (settings.reads) ZTCP_CHECK(out->create_read());
  return out;
}

QueuePairs::~QueuePairs() {
  if (cm_connection_ != nullptr && !in_forked_child())
    manager_->leave(cm_connection_, std::move(parts_));
}

// A piece that is notified separately takes two work requests; a probe takes one more.
std::uint32_t QueuePairs::send_depth() const {
  return (notifies_separately() ? 2 * kSendDepth : kSendDepth) + 1;
}

Result<RegionHandle, ReasonedError> QueuePairs::own_region(void* at, std::size_t size, int access,
                                                           const char* call) const {
  const Api& api = *parts_.opened->api;
  RegionHandle out(api.reg_mr(parts_.opened->domain.get(), at, size, access), {&api});
  if (!out)
    return refused(call, errno,
                   "; raise ulimit -l (LimitMEMLOCK of the service, --ulimit memlock=-1 of the "
                   "container)");
  return out;
}

Result<void, ReasonedError> QueuePairs::create_notifications() {
  assert(settings_.receive_depth <= NotificationPage{}.slots.size());
  parts_.notifications = std::make_unique<NotificationPage[]>(settings_.count);
  parts_.notifications_region =
      ZTCP_TRY(own_region(parts_.notifications.get(), settings_.count * sizeof(NotificationPage),
                          IBV_ACCESS_LOCAL_WRITE, "ibv_reg_mr of notifications"));
  return {};
}

// iWARP's answer to a read is the peer's write into it (RFC 5040 section 5.2), so it must be one
// that peers may write to.
Result<void, ReasonedError> QueuePairs::create_read() {
  parts_.read = std::make_unique<ReadPage>();
  const int access =
      device_.is_iwarp ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_LOCAL_WRITE;
  parts_.read_region = ZTCP_TRY(own_region(parts_.read.get(), sizeof(ReadPage), access,
                                           "ibv_reg_mr of the landing page of flushes"));
  return {};
}

Result<void, ReasonedError> QueuePairs::create_pair(std::uint32_t index) {
  const Api& api = *parts_.opened->api;
  ibv_qp* made = nullptr;
  // Some devices take fewer bytes inline, or none.
  while (true) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = parts_.completions.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = send_depth();
    wanted.cap.max_recv_wr = settings_.receive_depth;
    wanted.cap.max_send_sge = 1;
    wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = inline_bytes_;
    made = api.create_qp(parts_.opened->domain.get(), &wanted);
    if (made != nullptr || inline_bytes_ == 0 || index != 0) break;
    inline_bytes_ /= 2;
  }
  if (made == nullptr)
    return refused("ibv_create_qp", errno,
                   "; look at ulimit -l, and at max_qp in ibv_devinfo -v: each connection has one");
  parts_.pairs[index] = QueuePairHandle(made, {&api});
  ++count_;
  // A notification is always sent inline.
  if (inline_bytes_ < sizeof(Notification)) {
    notified_separately_above_ = Device::kNever;
    if (device_.is_iwarp)
      return refused("ibv_create_qp", EOPNOTSUPP, ", as this device takes nothing inline");
  }
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.pkey_index = device_.pkey_index;
  to.port_num = device_.port;
  to.qp_access_flags = settings_.answers_reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (device_.is_iwarp) mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  if (const int error = api.modify_qp(made, &to, mask); error != 0)
    return refused("ibv_modify_qp to INIT", error, "; is the partition key's index right?");
  return {};
}

void QueuePairs::tell(RailFacts& facts) const {
  facts.gid = address_.gid.gid;
  facts.lid = address_.lid;
  facts.network = device_.is_iwarp        ? Network::kIwarp
                  : device_.is_infiniband ? Network::kInfiniBand
                                          : Network::kEthernet;
  facts.mtu = static_cast<std::uint8_t>(std::countr_zero(device_.mtu_bytes) - 7);
  facts.first_psn = kFirstPsn;
  facts.queue_pairs = static_cast<std::uint8_t>(count_);
  facts.notifies_separately = notifies_separately() ? 1 : 0;
  for (std::uint32_t i = 0; i < count_; ++i) facts.numbers[i] = parts_.pairs[i]->qp_num;
  if (facts.network == Network::kEthernet) facts.gid_type = told_type(address_.gid.type);
  if (facts.network == Network::kInfiniBand && device_.gid_rule.wish.flid_index >= 0)
    facts.flid = flid_of(address_.gid.gid);
  // A sender offers its device's options, a receiver answers with those of both.
  std::optional<ibv_ece> ece = ece_;
  if (settings_.sends_pieces) ece = ece_of(*parts_.opened->api, device_, *parts_.pairs[0]);
  if (ece) facts.ece = {.is_told = 1, .vendor = ece->vendor_id, .options = ece->options};
  device_.hca.copy(facts.device.data(), facts.device.size() - 1);
}

ibv_ah_attr QueuePairs::path_to(const RailFacts& peer) const {
  ibv_ah_attr path{};
  path.port_num = device_.port;
  path.sl = device_.service_level >= 0 ? static_cast<std::uint8_t>(device_.service_level)
                                       : settings_.service_level;
  path.dlid = peer.lid;
  const bool is_of_other_subnet =
      device_.is_infiniband && !is_same_subnet(peer.gid, address_.gid.gid);
  // Routers address a port of another subnet by its FLID, if it has one.
  if (is_of_other_subnet && peer.flid != 0) path.dlid = peer.flid;
  // Ethernet has no other address; InfiniBand needs the GRH between subnets.
  if (device_.is_infiniband && !device_.needs_grh && !is_of_other_subnet) return path;
  path.is_global = 1;
  std::copy(peer.gid.begin(), peer.gid.end(), std::begin(path.grh.dgid.raw));
  path.grh.sgid_index = static_cast<std::uint8_t>(address_.gid.index);
  path.grh.hop_limit = kHops;
  path.grh.traffic_class = settings_.traffic_class;
  return path;
}

// Called before the queue pairs go to RTR; afterwards the choice of a receiver's device is known.
Result<void, ReasonedError> QueuePairs::take_ece(const RailFacts& peer) {
  const Api& api = *parts_.opened->api;
  if (peer.ece.is_told == 0 || !device_.has_ece || api.set_ece == nullptr || settings_.reads)
    return {};
  ibv_ece ece{};
  ece.vendor_id = peer.ece.vendor;
  ece.options = peer.ece.options;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const int error = api.set_ece(parts_.pairs[i].get(), &ece);
    if (error == 0) continue;
    // A receiver may do without options; a sender must use those of the receiver's device.
    if (!settings_.sends_pieces && i == 0) return {};
    return refused("ibv_set_ece", error, "; set NCCL_IB_ECE_ENABLE=0 on all hosts");
  }
  ece_ = ece;
  return {};
}

Result<void, ReasonedError> QueuePairs::join(const RailFacts& peer) {
  const Api& api = *parts_.opened->api;
  count_ = std::min<std::uint32_t>(count_, peer.queue_pairs);
  if (device_.is_iwarp) return {};
  ZTCP_CHECK(take_ece(peer));
  const ibv_ah_attr path = path_to(peer);
  for (std::uint32_t i = 0; i < count_; ++i) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu =
        static_cast<ibv_mtu>(std::min<int>(std::countr_zero(device_.mtu_bytes) - 7, peer.mtu));
    to.dest_qp_num = peer.numbers[i];
    to.rq_psn = peer.first_psn;
    to.max_dest_rd_atomic = 1;
    to.min_rnr_timer = kMinRnrTimer;
    to.ah_attr = path;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (const int error = api.modify_qp(parts_.pairs[i].get(), &to, mask); error != 0)
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
    if (const int error = api.modify_qp(parts_.pairs[i].get(), &to, mask); error != 0)
      return refused("ibv_modify_qp to RTS", error, "");
  }
  if (ece_ && !settings_.sends_pieces) ece_ = ece_of(api, device_, *parts_.pairs[0]);
  return {};
}

void QueuePairs::connect(std::shared_ptr<ConnectionManager> manager, const RailFacts& peer,
                         bool initiates, const Nonce& nonce) {
  CmConnectionPlan plan{.initiates = initiates,
                        .nonce = nonce,
                        .numbers = {},
                        .hca = device_.hca,
                        .from = device_.exchange.address,
                        .scope = device_.exchange.scope,
                        .to = {address_of(peer.gid), peer.port}};
  for (std::uint32_t i = 0; i < count_; ++i) plan.numbers.push_back(number(i));
  manager_ = std::move(manager);
  cm_connection_ = manager_->join(std::move(plan));
}

void QueuePairs::abort() {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_ERR;
  for (std::uint32_t i = 0; i < count_; ++i)
    parts_.opened->api->modify_qp(parts_.pairs[i].get(), &to, IBV_QP_STATE);
}

bool QueuePairs::uses(const FailedPart& part) const {
  return part.at == parts_.completions.get() ||
         std::ranges::any_of(parts_.pairs, [&](const auto& pair) {
           return pair && pair.get() == part.at && pair->qp_num == part.number;
         });
}

std::uint32_t QueuePairs::index_of(std::uint32_t number) const {
  std::uint32_t index = 0;
  while (index < count_ && parts_.pairs[index]->qp_num != number) ++index;
  return index;
}

Status QueuePairs::post(std::uint32_t queue_pair, const WorkRequest& request) {
  if (is_notified_separately(request)) [[unlikely]]
    return post_with_notification(queue_pair, request);
  ibv_sge piece;
  ibv_send_wr work = write_of(request, piece);
  work.wr_id = request.id;
  if (request.is_signalled) work.send_flags |= IBV_SEND_SIGNALED;
  if (request.kind == WorkRequest::Kind::kWriteImmediate) {
    work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    work.imm_data = htobe32(request.immediate);
  }
  return send(queue_pair, work);
}

Status QueuePairs::post_with_notification(std::uint32_t queue_pair, const WorkRequest& request) {
  ibv_sge piece;
  ibv_send_wr write = write_of(request, piece);
  write.wr_id = kWriteId;
  // Soft iWARP may still read unsignalled work from the caller's pages when the message behind it
  // is completed; its completions don't mean arrival.
  if (device_.is_iwarp) write.send_flags |= IBV_SEND_SIGNALED;
  // The notification arrives after all earlier work on the queue pair (IBA 9.5, RFC 5040 section
  // 5.5).
  const Notification notification{request.immediate, request.size_bytes};
  ibv_sge told{reinterpret_cast<std::uint64_t>(&notification), sizeof notification, 0};
  ibv_send_wr message{};
  message.wr_id = request.id;
  message.sg_list = &told;
  message.num_sge = 1;
  message.opcode = IBV_WR_SEND;
  message.send_flags = IBV_SEND_INLINE;
  if (request.is_signalled) message.send_flags |= IBV_SEND_SIGNALED;
  write.next = &message;
  return send(queue_pair, request.size_bytes > 0 ? write : message);
}

Status QueuePairs::send(std::uint32_t queue_pair, ibv_send_wr& first) {
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(parts_.pairs[queue_pair].get(), &first, &bad); error != 0)
    return fail(Errc::kSystem, "ibv_post_send", std::abs(error));  // Some drivers' are negative.
  return {};
}

Status QueuePairs::post_receives(std::uint32_t queue_pair, std::uint32_t count) {
  constexpr std::uint32_t kMost = 64;
  std::array<ibv_recv_wr, kMost> works{};
  std::array<ibv_sge, kMost> places;
  while (count > 0) {
    const std::uint32_t now = std::min(count, kMost);
    for (std::uint32_t i = 0; i < now; ++i) {
      works[i].wr_id = kReceiveId;
      works[i].next = i + 1 < now ? &works[i + 1] : nullptr;
      if (parts_.notifications == nullptr) continue;
      auto& slots = parts_.notifications[queue_pair].slots;
      Notification& to = slots[posted_[queue_pair]++ % slots.size()];
      places[i] = {reinterpret_cast<std::uint64_t>(&to), sizeof to,
                   parts_.notifications_region->lkey};
      works[i].sg_list = &places[i];
      works[i].num_sge = 1;
    }
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_recv(parts_.pairs[queue_pair].get(), works.data(), &bad);
    // The receives before the refused one have been posted, and will come back.
    if (error == 0)
      receives_out_ += now;
    else if (bad != nullptr)
      receives_out_ += static_cast<std::uint32_t>(bad - works.data());
    if (error != 0) return fail(Errc::kSystem, "ibv_post_recv", std::abs(error));
    count -= now;
  }
  return {};
}

// Receives are consumed in the order in which they were posted, by any kind of message.
Notification QueuePairs::take_notification(const ibv_wc& completion) {
  const std::uint32_t index = index_of(completion.qp_num);
  const auto& slots = parts_.notifications[index].slots;
  const Notification& told = slots[taken_[index]++ % slots.size()];
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
    return {be32toh(completion.imm_data), completion.byte_len};
  // An immediate of no piece: every session rejects it.
  constexpr std::uint32_t kNonsense = encode({.piece = 1, .pieces = 1});
  static_assert(decode(kNonsense).piece >= decode(kNonsense).pieces);
  return completion.byte_len == sizeof told ? told : Notification{kNonsense, 0};
}

Status QueuePairs::post_read(const std::byte* from, std::uint32_t rkey, std::uint64_t id) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(&parts_.read->byte), 1, parts_.read_region->lkey};
  ibv_send_wr work{};
  work.wr_id = id;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_READ;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(from);
  work.wr.rdma.rkey = rkey;
  return send(0, work);
}

}  // namespace ztcp::verbs
