// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending half of queue pairs: packets, answers, retransmission.
#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <utility>

#include "tests/support/verbs/soft_nic/nic.h"

namespace ztcp::soft_nic {
namespace {

using std::chrono::microseconds;

// IBA table 45 has 0.64 ms for the value that ztcp sets; other values wait as long here.
constexpr microseconds kNotReadyWait{640};
constexpr int kForEver = 7;
constexpr int kTurns = 8;

ibv_wc_opcode completed(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_SEND) return IBV_WC_SEND;
  return opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
}

PacketKind kind_of(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_SEND) return PacketKind::kSend;
  return opcode == IBV_WR_RDMA_READ ? PacketKind::kRead : PacketKind::kWrite;
}

}  // namespace

void Nic::send_all(TimePoint now) {
  bring_up(now);
  std::vector<QueuePair*> ready;
  for (const auto& [number, qp] : queue_pairs_) {
    on_silence(*qp, now);
    if (qp->has_to_send() && qp->resumes_at <= now) ready.push_back(qp);
  }
  std::shuffle(ready.begin(), ready.end(), random_);
  // Then the packets that have come get their turn.
  for (int turn = 0; turn < kTurns && !ready.empty(); ++turn)
    std::erase_if(ready, [&](QueuePair* qp) { return !send_packet(*qp, now); });
  std::vector<Stream*> streams;
  for (const auto& [node, stream] : outgoing_) streams.push_back(stream);
  for (Stream* stream : streams) write_out(*stream);
}

// Called when the request's first packet is due. A result other than IBV_WC_SUCCESS ends it.
ibv_wc_status Nic::begin(QueuePair& qp, Work& work) {
  const Faults& faults = settings_.faults;
  if (work.is_begun) return work.fate;
  work.is_begun = true;
  if (work.request.opcode == IBV_WR_RDMA_READ) counters_.add(Count::kReads);
  if (work.request.opcode == IBV_WR_RDMA_WRITE) counters_.add(Count::kWrites);
  if (!is_message(work.request.opcode)) return IBV_WC_SUCCESS;
  counters_.add(Count::kMessages);
  ++messages_;
  count_message(qp);
  return messages_ == faults.fail.at ? static_cast<ibv_wc_status>(faults.fail.value)
                                     : IBV_WC_SUCCESS;
}

bool Nic::is_lost(const QueuePair& qp) {
  if (!qp.device().is_up) return true;
  if (!happens_once_of(settings_.faults.drop_of)) return false;
  counters_.add(Count::kDropped);
  return true;
}

// False: it has nothing more to send now.
bool Nic::send_packet(QueuePair& qp, TimePoint now) {
  if (!qp.has_to_send() || qp.resumes_at > now) return false;
  Work& work = qp.sends[qp.next_work];
  if (work.fate = begin(qp, work); work.fate != IBV_WC_SUCCESS) {
    end_fated(qp);
    return false;
  }
  Stream* const stream = stream_to(node_of(qp.to.dest_qp_num));
  if (stream != nullptr && !stream->has_room()) return false;
  const Fault& delay = settings_.faults.delay;
  if (happens_once_of(delay.at)) {
    counters_.add(Count::kDelayed);
    qp.resumes_at = now + microseconds(random_() % (delay.value + 1));
    return false;
  }

  const bool is_read = work.request.opcode == IBV_WR_RDMA_READ;
  const std::uint32_t at = qp.next_packet * kMtuBytes;
  const std::uint32_t size = is_read ? 0 : std::min(work.piece.length - at, kMtuBytes);
  const bool is_last = qp.next_packet + 1 == work.packets;
  const std::uint64_t from = work.piece.addr + at;
  const bool is_inline = (work.request.send_flags & IBV_SEND_INLINE) != 0;
  Memory* local = nullptr;
  if (work.piece.length > 0 && !is_inline) {
    local = memory_.find(work.piece.lkey, qp.pd, work.piece.addr, work.piece.length);
    if (local == nullptr) {
      work.fate = IBV_WC_LOC_PROT_ERR;
      end_fated(qp);
      return false;
    }
  }
  if (stream != nullptr && !is_lost(qp)) {
    const auto payload = stream->append({.to = qp.to.dest_qp_num,
                                         .from = qp.qp_num,
                                         .psn = work.first_psn + qp.next_packet,
                                         .kind = kind_of(work.request.opcode),
                                         .is_last = is_last,
                                         .takes_receive = is_message(work.request.opcode),
                                         .immediate = work.request.imm_data,
                                         .rkey = work.request.wr.rdma.rkey,
                                         .address = work.request.wr.rdma.remote_addr + at,
                                         .payload_bytes = size,
                                         .message_bytes = work.piece.length,
                                         .lid = qp.to.ah_attr.dlid});
    counters_.add_sent(qp.device().index, size);
    if (is_inline)
      std::copy_n(work.bytes.begin(), size, payload.begin());
    else if (local != nullptr && !is_read)
      memory_.read(*local, payload, from);
    // Bytes that the kernel takes at once make room for others.
    if (!stream->has_room()) write_out(*stream);
  }
  if (!qp.waits_for_answer()) qp.heard_at = now;
  ++qp.next_packet;
  if (is_last) {
    ++qp.next_work;
    qp.next_packet = 0;
  }
  return true;
}

// Sends again from the first unacknowledged packet.
void Nic::go_back(QueuePair& qp) {
  qp.next_work = 0;
  qp.next_packet = qp.acked_psn + 1 - qp.sends.front().first_psn;
}

TimePoint Nic::silence_ends(const QueuePair& qp) {
  // Zero is for ever (IBA 9.7.6.1.3).
  if (!qp.waits_for_answer() || qp.to.timeout == 0) return TimePoint::max();
  return qp.heard_at + std::chrono::nanoseconds(4096ULL << qp.to.timeout);
}

void Nic::on_silence(QueuePair& qp, TimePoint now) {
  if (silence_ends(qp) > now) return;
  if (qp.retries_left-- == 0) return finish(qp, IBV_WC_RETRY_EXC_ERR);
  counters_.add(Count::kSentAgain);
  go_back(qp);
  qp.heard_at = now;
}

TimePoint Nic::next_deadline() const {
  TimePoint out = TimePoint::max();
  for (const Context* context : contexts_)
    out = std::min(out, static_cast<const Device&>(*context->device).comes_up_at);
  for (const auto& [number, qp] : queue_pairs_) {
    out = std::min(out, silence_ends(*qp));
    if (!qp->has_to_send()) continue;
    const auto stream = outgoing_.find(node_of(qp->to.dest_qp_num));
    // Otherwise epoll reports when there is room.
    if (stream == outgoing_.end() || stream->second->has_room())
      out = std::min(out, qp->resumes_at);
  }
  return out;
}

void Nic::on_answer(const Packet& packet, std::span<const std::byte> payload) {
  QueuePair* const qp = find(packet.to);
  if (qp == nullptr || qp->state != IBV_QPS_RTS || qp->to.dest_qp_num != packet.from ||
      qp->sends.empty() || qp->device().lid() != packet.lid || !qp->device().is_up)
    return;
  if (packet.kind == PacketKind::kAcknowledge) return acknowledge(*qp, packet.psn);
  if (packet.kind == PacketKind::kRefuse) return on_refusal(*qp, packet);
  acknowledge(*qp, packet.psn - 1);
  if (qp->sends.empty() || qp->sends.front().first_psn != packet.psn) return;
  const Work& work = qp->sends.front();
  Memory* const into = memory_.find(work.piece.lkey, qp->pd, work.piece.addr, payload.size());
  const bool may = into != nullptr && (into->access & IBV_ACCESS_LOCAL_WRITE) != 0;
  if (!may || !memory_.write(*into, work.piece.addr, payload))
    return finish(*qp, IBV_WC_LOC_PROT_ERR);
  acknowledge(*qp, packet.psn);
}

void Nic::on_refusal(QueuePair& qp, const Packet& packet) {
  acknowledge(qp, packet.psn - 1);
  if (qp.sends.empty()) return;
  const Work& work = qp.sends.front();
  // An answer to a packet that was acknowledged meanwhile.
  if (is_after(work.first_psn, packet.psn) || is_after(packet.psn, work.last_psn())) return;
  if (packet.status != IBV_WC_RNR_RETRY_EXC_ERR)
    return finish(qp, static_cast<ibv_wc_status>(packet.status));
  if (qp.to.rnr_retry != kForEver && qp.not_ready_left-- == 0)
    return finish(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  go_back(qp);
  qp.heard_at = Clock::now();
  qp.resumes_at = qp.heard_at + kNotReadyWait;
}

void Nic::acknowledge(QueuePair& qp, std::uint32_t psn) {
  if (!is_after(psn, qp.acked_psn)) return;
  qp.acked_psn = psn;
  while (!qp.sends.empty() && !is_after(qp.sends.front().last_psn(), psn))
    finish(qp, IBV_WC_SUCCESS);
  qp.heard_at = Clock::now();
  qp.retries_left = qp.to.retry_cnt;
  qp.not_ready_left = qp.to.rnr_retry;
  end_fated(qp);
}

void Nic::end_fated(QueuePair& qp) {
  if (!qp.sends.empty() && qp.sends.front().fate != IBV_WC_SUCCESS)
    finish(qp, qp.sends.front().fate);
}

// Completes the first unacknowledged request.
void Nic::finish(QueuePair& qp, ibv_wc_status status) {
  const Work work = std::move(qp.sends.front());
  qp.sends.pop_front();
  if (qp.next_work > 0)
    --qp.next_work;
  else
    qp.next_packet = 0;
  ++qp.unsignalled;
  if (status != IBV_WC_SUCCESS || (work.request.send_flags & IBV_SEND_SIGNALED) != 0) {
    ibv_wc wc{};
    wc.wr_id = work.request.wr_id;
    wc.status = status;
    wc.opcode = completed(work.request.opcode);
    wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x81;
    wc.qp_num = qp.qp_num;
    complete(qp.send_cq, wc, std::exchange(qp.unsignalled, 0));
  }
  if (status == IBV_WC_SUCCESS) return;
  counters_.add(Count::kFailed);
  fail(qp);
}

void Nic::fail(QueuePair& qp) {
  qp.state = IBV_QPS_ERR;
  ibv_wc wc{};
  wc.status = IBV_WC_WR_FLUSH_ERR;
  wc.vendor_err = 0x81;
  wc.qp_num = qp.qp_num;
  for (const Work& work : qp.sends) {
    wc.wr_id = work.request.wr_id;
    wc.opcode = completed(work.request.opcode);
    complete(qp.send_cq, wc, 1 + std::exchange(qp.unsignalled, 0));
  }
  qp.sends.clear();
  qp.next_work = qp.next_packet = 0;
  wc.opcode = IBV_WC_RECV;
  for (const Receive& receive : qp.receives) {
    wc.wr_id = receive.id;
    complete(qp.recv_cq, wc, 0);
  }
  qp.receives.clear();
}

// Called for each message begun or received.
void Nic::count_message(QueuePair& qp) {
  ++begun_or_come_;
  if (begun_or_come_ == settings_.faults.down_at) lose(qp.device(), IBV_EVENT_PORT_ERR);
  if (begun_or_come_ == settings_.faults.fatal_at) lose(qp.device(), IBV_EVENT_DEVICE_FATAL);
}

void Nic::lose(Device& device, ibv_event_type event) {
  device.is_up = false;
  const std::uint64_t after_ms = settings_.faults.up_after_ms;
  if (event == IBV_EVENT_PORT_ERR && after_ms > 0)
    device.comes_up_at = Clock::now() + std::chrono::milliseconds(after_ms);
  tell(device, event);
}

void Nic::bring_up(TimePoint now) {
  for (const Context* context : contexts_) {
    auto& device = static_cast<Device&>(*context->device);
    if (device.comes_up_at > now) continue;
    device.comes_up_at = TimePoint::max();
    device.is_up = true;
    tell(device, IBV_EVENT_PORT_ACTIVE);
  }
}

void Nic::tell(const Device& device, ibv_event_type event) {
  for (const Context* context : contexts_) {
    if (context->device != &device) continue;
    const std::array<int, 2> told{event, 1};
    if (write(context->event_pipe, told.data(), sizeof told) != sizeof told)
      counters_.note_misuse("the device's events are not read");
  }
}

}  // namespace ztcp::soft_nic
