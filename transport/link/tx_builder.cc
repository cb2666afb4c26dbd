// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/tx_builder.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <rte_ip.h>
#include <rte_mbuf.h>

#include "transport/link/mbuf_layout.h"

namespace ztcp::link {
namespace {

// Nothing is released: payload stays in place until TCP has seen its ACK, and an ACK of a frame
// that was sent once means that the NIC has read it. Called on the link's thread.
void on_attached_memory_free(void*, void* attached) { --*static_cast<std::uint64_t*>(attached); }

// Links `part` after `last`, the end of `head`'s chain, and makes it the end.
void chain(rte_mbuf& head, rte_mbuf*& last, rte_mbuf* part) {
  last->next = part;
  last = part;
  head.nb_segs = static_cast<std::uint16_t>(head.nb_segs + 1);
  head.pkt_len += part->data_len;
}

std::uint16_t tail_room(const rte_mbuf& mbuf) {
  // Attached memory belongs to the user: nothing is ever written after it.
  return RTE_MBUF_HAS_EXTBUF(&mbuf) ? std::uint16_t{0} : rte_pktmbuf_tailroom(&mbuf);
}

}  // namespace

TxBuilder::TxBuilder(const Port& port, std::uint16_t queue)
    : config_(port.config()),
      abilities_(port.abilities()),
      pools_(port.pools(queue)),
      max_payload_bytes_(config_.mtu_bytes) {}

bool TxBuilder::attachable(const TxFrame& frame, const Fragment& fragment) const {
  if (config_.driver_copies) return true;
  return config_.device_reads_user_memory && abilities_.chained_buffers && !frame.copy_payload &&
         fragment.memory_key != kUnmapped;
}

TxBuilder::Built TxBuilder::build(const TxFrame& frame) {
  const bool super = frame.segment_size_bytes != 0;
  const auto fragments = std::span(frame.fragments).first(frame.fragment_count);
  // Payload and IP header must fit the MTU; a super-segment the 16 bit of IP's length field.
  const std::uint32_t limit = super ? UINT16_MAX : max_payload_bytes_;
  const std::uint32_t ip_bytes = frame.header_bytes - frame.l2_bytes + frame.payload_bytes;
  if (ip_bytes > limit || (super && !abilities_.tcp_segmentation))
    return {Outcome::kImpossible, nullptr};
  for (const Fragment& fragment : fragments)
    if (fragment.size_bytes > UINT16_MAX) return {Outcome::kImpossible, nullptr};

  Built built = build_chain(frame, /*copy_all=*/false);
  const std::uint16_t most = super ? abilities_.max_super_segments : abilities_.max_segments;
  if (built.mbuf != nullptr && built.mbuf->nb_segs > most) {
    rte_pktmbuf_free(built.mbuf);
    built = build_chain(frame, /*copy_all=*/true);
    if (built.mbuf != nullptr && built.mbuf->nb_segs > most) {
      rte_pktmbuf_free(built.mbuf);
      return {Outcome::kImpossible, nullptr};
    }
  }
  return built;
}

TxBuilder::Built TxBuilder::build_chain(const TxFrame& frame, bool copy_all) {
  const auto fragments = std::span(frame.fragments).first(frame.fragment_count);
  std::uint32_t copied = 0;
  for (const Fragment& fragment : fragments)
    if (copy_all || !attachable(frame, fragment)) copied += fragment.size_bytes;

  const bool small = frame.header_bytes + copied <= kTxHeaderRoomBytes;
  rte_mbuf* head = rte_pktmbuf_alloc(small ? pools_.tx_header : pools_.tx_copy);
  if (head == nullptr) return {Outcome::kNoMemory, nullptr};
  std::memcpy(rte_pktmbuf_mtod(head, void*), frame.header.data(), frame.header_bytes);
  head->data_len = frame.header_bytes;
  head->pkt_len = frame.header_bytes;

  rte_mbuf* last = head;
  for (const Fragment& fragment : fragments) {
    if (fragment.size_bytes == 0) continue;
    if (copy_all || !attachable(frame, fragment)) {
      if (!append_copy(*head, last, fragment)) {
        rte_pktmbuf_free(head);
        return {Outcome::kNoMemory, nullptr};
      }
      continue;
    }
    rte_mbuf* part = attach(fragment);
    if (part == nullptr) {
      rte_pktmbuf_free(head);
      return {Outcome::kNoMemory, nullptr};
    }
    chain(*head, last, part);
  }
  copied_bytes_ += copied;
  request_offloads(frame, *head);
  return {Outcome::kBuilt, head};
}

rte_mbuf* TxBuilder::attach(const Fragment& fragment) {
  rte_mbuf* mbuf = rte_pktmbuf_alloc(pools_.tx_header);
  if (mbuf == nullptr) return nullptr;
  rte_mbuf_ext_shared_info& shared = private_of<TxPrivate>(mbuf).shared;
  shared.free_cb = on_attached_memory_free;
  shared.fcb_opaque = &attached_;
  ++attached_;
  rte_mbuf_ext_refcnt_set(&shared, 1);
  // DPDK takes a mutable pointer but only reads the frames it transmits. The address is also the
  // device's: user memory is attached in IOVA=VA mode only, or read by the CPU (memif).
  auto* address = const_cast<std::byte*>(fragment.data);
  const auto size = static_cast<std::uint16_t>(fragment.size_bytes);
  rte_pktmbuf_attach_extbuf(mbuf, address, reinterpret_cast<rte_iova_t>(address), size, &shared);
  mbuf->data_off = 0;
  mbuf->data_len = size;
  mbuf->pkt_len = size;
  return mbuf;
}

bool TxBuilder::append_copy(rte_mbuf& head, rte_mbuf*& last, const Fragment& fragment) {
  const std::byte* from = fragment.data;
  std::uint32_t left = fragment.size_bytes;
  while (left > 0) {
    if (tail_room(*last) == 0) {
      rte_mbuf* more = rte_pktmbuf_alloc(pools_.tx_copy);
      if (more == nullptr) return false;
      chain(head, last, more);
    }
    const auto piece = static_cast<std::uint16_t>(std::min<std::uint32_t>(left, tail_room(*last)));
    std::memcpy(rte_pktmbuf_mtod_offset(last, void*, last->data_len), from, piece);
    last->data_len = static_cast<std::uint16_t>(last->data_len + piece);
    head.pkt_len += piece;
    from += piece;
    left -= piece;
  }
  return true;
}

void TxBuilder::request_offloads(const TxFrame& frame, rte_mbuf& head) const {
  if (!frame.checksum_offload) return;
  const auto l4_bytes =
      static_cast<std::uint64_t>(frame.header_bytes - frame.l2_bytes - frame.l3_bytes);
  head.tx_offload = rte_mbuf_tx_offload(frame.l2_bytes, frame.l3_bytes, l4_bytes,
                                        frame.segment_size_bytes, 0, 0, 0);
  head.ol_flags |= RTE_MBUF_F_TX_TCP_CKSUM;
  if (frame.is_ipv6()) {
    head.ol_flags |= RTE_MBUF_F_TX_IPV6;
  } else if (abilities_.tx_ipv4_checksum) {
    head.ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
  } else {
    head.ol_flags |= RTE_MBUF_F_TX_IPV4;
    auto* ip = rte_pktmbuf_mtod_offset(&head, rte_ipv4_hdr*, frame.l2_bytes);
    ip->hdr_checksum = 0;
    ip->hdr_checksum = rte_ipv4_cksum(ip);
  }
  if (frame.segment_size_bytes != 0) head.ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
}

}  // namespace ztcp::link
