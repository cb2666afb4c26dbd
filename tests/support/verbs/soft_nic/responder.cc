// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The receiving half of queue pairs: requests of other processes, and the answers.
#include "tests/support/verbs/soft_nic/nic.h"

namespace ztcp::soft_nic {

void Nic::on_request(Stream& stream, const Packet& packet, std::span<const std::byte> payload) {
  QueuePair* const qp = find(packet.to);
  const bool may_receive =
      qp != nullptr && (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS) &&
      qp->to.dest_qp_num == packet.from && qp->device().lid() == packet.lid && qp->device().is_up;
  // A missing queue pair does not answer; packets that come too early are sent again.
  if (!may_receive || is_after(packet.psn, qp->expected_psn)) return;
  if (packet.kind == PacketKind::kRead) return answer_read(stream, *qp, packet);
  Packet answer{.to = packet.from,
                .from = packet.to,
                .psn = packet.psn,
                .kind = PacketKind::kAcknowledge,
                .lid = qp->to.ah_attr.dlid};
  if (packet.psn == qp->expected_psn) {
    const ibv_wc_status status = carry_out(*qp, packet, payload);
    if (status != IBV_WC_SUCCESS) {
      answer.kind = PacketKind::kRefuse;
      answer.status = static_cast<std::uint8_t>(status);
      stream.append(answer);
      if (status != IBV_WC_RNR_RETRY_EXC_ERR) fail(*qp);
      return;
    }
    ++qp->expected_psn;
    if (packet.is_last && packet.takes_receive) {
      tell_receiver(*qp, packet);
      count_message(*qp);
      if (!qp->device().is_up) return;
    }
  }
  // Also for a duplicate: its answer was lost.
  answer.psn = qp->expected_psn - 1;
  stream.append(answer);
}

ibv_wc_status Nic::check(QueuePair& qp, const Packet& packet, unsigned needed, std::size_t size,
                         Memory*& out) {
  if (size == 0) return IBV_WC_SUCCESS;
  out = memory_.find(packet.rkey, qp.pd, packet.address, size);
  const bool may =
      out != nullptr && (out->access & needed) != 0 && (qp.to.qp_access_flags & needed) != 0;
  return may ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

ibv_wc_status Nic::carry_out(QueuePair& qp, const Packet& packet,
                             std::span<const std::byte> payload) {
  if (packet.is_last && packet.takes_receive &&
      (qp.receives.empty() || happens_once_of(settings_.faults.rnr_of))) {
    counters_.add(Count::kNotReady);
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  if (packet.kind == PacketKind::kSend) return fill(qp, payload);
  Memory* into = nullptr;
  const ibv_wc_status may = check(qp, packet, IBV_ACCESS_REMOTE_WRITE, payload.size(), into);
  if (may != IBV_WC_SUCCESS || into == nullptr) return may;
  counters_.add(Count::kReceivedBytes, payload.size());
  return memory_.write(*into, packet.address, payload) ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR;
}

// Fills the first receive's memory; a send is one packet.
ibv_wc_status Nic::fill(QueuePair& qp, std::span<const std::byte> payload) {
  const ibv_sge& place = qp.receives.front().place;
  if (payload.size() > place.length) return IBV_WC_REM_INV_REQ_ERR;
  Memory* const into = memory_.find(place.lkey, qp.pd, place.addr, payload.size());
  const bool may = into != nullptr && (into->access & IBV_ACCESS_LOCAL_WRITE) != 0;
  return may && memory_.write(*into, place.addr, payload) ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR;
}

void Nic::tell_receiver(QueuePair& qp, const Packet& packet) {
  const bool is_send = packet.kind == PacketKind::kSend;
  ibv_wc wc{};
  wc.wr_id = qp.receives.front().id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  wc.wc_flags = is_send ? 0 : IBV_WC_WITH_IMM;
  wc.imm_data = is_send ? 0 : packet.immediate;
  wc.byte_len = packet.message_bytes;
  wc.qp_num = qp.qp_num;
  qp.receives.pop_front();
  complete(qp.recv_cq, wc, 0);
}

// A read may be repeated. It makes earlier writes visible.
void Nic::answer_read(Stream& stream, QueuePair& qp, const Packet& packet) {
  Packet answer{.to = packet.from,
                .from = packet.to,
                .psn = packet.psn,
                .kind = PacketKind::kRefuse,
                .lid = qp.to.ah_attr.dlid};
  Memory* from = nullptr;
  ibv_wc_status status = qp.to.max_dest_rd_atomic == 0 ? IBV_WC_REM_INV_REQ_ERR
                                                       : check(qp, packet, IBV_ACCESS_REMOTE_READ,
                                                               packet.message_bytes, from);
  std::vector<std::byte> bytes(packet.message_bytes);
  if (status == IBV_WC_SUCCESS &&
      (!memory_.push(&qp.device()) ||
       (from != nullptr && !memory_.read(*from, bytes, packet.address))))
    status = IBV_WC_REM_OP_ERR;
  if (status == IBV_WC_SUCCESS) {
    if (packet.psn == qp.expected_psn) ++qp.expected_psn;
    answer.kind = PacketKind::kReadAnswer;
    answer.payload_bytes = packet.message_bytes;
    const auto payload = stream.append(answer);
    std::copy(bytes.begin(), bytes.end(), payload.begin());
    return;
  }
  answer.status = static_cast<std::uint8_t>(status);
  stream.append(answer);
  fail(qp);
}

}  // namespace ztcp::soft_nic
