// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp_lane.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "transport/wire/byte_order.h"
#include "transport/wire/checksum.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::link {
namespace {

using hugepage::kXdpTxChunks;
using xdp::Socket;

constexpr std::uint32_t kBurst = 32;
constexpr Duration kReadingInterval = std::chrono::milliseconds(500);

constexpr std::size_t kIpv4ChecksumOffset = 10;  // RFC 791 section 3.1.

}  // namespace

XdpLane::XdpLane(std::shared_ptr<XdpPort> port, std::vector<std::unique_ptr<Socket>> sockets,
                 std::size_t lane, std::size_t lanes)
    : port_(std::move(port)),
      sockets_(std::move(sockets)),
      layout_(port_->config.mtu_bytes),
      rx_chunks_(port_->config.rx_frames) {
  capabilities_.mtu_bytes = port_->config.mtu_bytes;
  capabilities_.mac = port_->interface.mac;
  capabilities_.tx_checksum = capabilities_.sums_as_it_copies = true;
  capabilities_.shard = static_cast<std::uint8_t>(lane);
  capabilities_.shards = static_cast<std::uint8_t>(lanes);
  // Every queue can still receive a few bursts of the longest frames, even if all kept frames
  // are of one queue.
  const std::uint32_t spare = 4 * kBurst * layout_.pieces;
  capabilities_.max_kept_frames = (rx_chunks_ - spare) / layout_.pieces;
  capabilities_.max_kept_bytes = std::size_t{rx_chunks_ - spare} * layout_.chunk_bytes;
  frames_.resize(sockets_.size() * rx_chunks_);
  for (std::size_t i = 0; i < frames_.size(); ++i) frames_[i].socket = i / rx_chunks_;
  Socket& sender = *sockets_.front();
  for (std::uint32_t i = 0; i < kXdpTxChunks; ++i)
    free_tx_.push_back(sender.first_tx_address() + std::uint64_t{i} * layout_.chunk_bytes);
}

std::size_t XdpLane::receive(std::span<RxFrame> frames) {
  // The kernel did not take all frames at the last call.
  if (!sockets_.front()->tx.is_drained()) [[unlikely]]
    sockets_.front()->wake_for_tx();
  std::size_t count = 0;
  for (std::size_t i = 0; i < sockets_.size() && count < frames.size(); ++i) {
    const std::size_t index = (next_socket_ + i) % sockets_.size();
    count += receive_from(index, frames.subspan(count));
  }
  next_socket_ = (next_socket_ + 1) % sockets_.size();
  return count;
}

std::size_t XdpLane::receive_from(std::size_t index, std::span<RxFrame> frames) {
  Socket& socket = *sockets_[index];
  std::size_t count = 0;
  while (count < frames.size()) {
    std::uint32_t pieces = 1;
    const auto reach = [&] { return socket.rx.available(pieces) >= pieces; };
    while (reach() && (socket.rx.peek(pieces - 1).options & xdp::kContinues) != 0) ++pieces;
    if (!reach()) break;
    if (take_frame(index, pieces, frames[count])) ++count;
    socket.rx.take(pieces);
  }
  socket.fill.publish();  // The pieces of a frame that was dropped.
  socket.wake_for_fill();
  return count;
}

bool XdpLane::take_frame(std::size_t index, std::uint32_t pieces, RxFrame& frame) {
  Socket& socket = *sockets_[index];
  if (pieces > kMostXdpPieces) {  // No frame of our MTU.
    for (std::uint32_t i = 0; i < pieces; ++i)
      socket.fill.put(socket.rx.peek(i).addr / layout_.chunk_bytes * layout_.chunk_bytes);
    return false;
  }
  const xdp_desc first = socket.rx.peek(0);
  Frame& taken = frames_[index * rx_chunks_ + first.addr / layout_.chunk_bytes];
  taken.pieces = pieces;
  std::size_t size = first.len;
  taken.addresses[0] = first.addr;
  for (std::uint32_t i = 1; i < pieces; ++i) {
    const xdp_desc piece = socket.rx.peek(i);
    taken.addresses[i] = piece.addr;
    taken.more[i - 1] = {socket.at(piece.addr), piece.len};
    size += piece.len;
  }
  frame = {};
  frame.handle = &taken;
  frame.head = {socket.at(first.addr), first.len};
  frame.more = std::span(taken.more).first(pieces - 1);
  frame.charge_bytes = pieces * layout_.chunk_bytes;
  counters_.rx_frames += 1;
  counters_.rx_bytes += size;
  return true;
}

void XdpLane::give_back(const Frame& frame) {
  Socket& socket = *sockets_[frame.socket];
  for (std::uint32_t i = 0; i < frame.pieces; ++i)
    socket.fill.put(frame.addresses[i] / layout_.chunk_bytes * layout_.chunk_bytes);
}

void XdpLane::release(std::span<RxFrame> frames) {
  for (RxFrame& frame : frames) {
    if (frame.kept || frame.handle == nullptr) continue;
    give_back(*static_cast<const Frame*>(std::exchange(frame.handle, nullptr)));
  }
  for (const auto& socket : sockets_) socket->fill.publish();
}

void XdpLane::reap_sent() {
  auto& ring = sockets_.front()->completion;
  const std::uint32_t count = ring.available(kXdpTxChunks);
  for (std::uint32_t i = 0; i < count; ++i) free_tx_.push_back(ring.peek(i));
  ring.take(count);
}

// Each lane counts its own queues.
void XdpLane::read_drops(TimePoint now) {
  next_reading_ = now + kReadingInterval;
  NicDrops drops;
  std::uint64_t without_chunk = 0;
  for (const auto& socket : sockets_) {
    const xdp_statistics told = socket->statistics();
    drops.rx_missed += told.rx_ring_full;
    drops.rx_no_buffers += told.rx_fill_ring_empty_descs;
    drops.rx_errors += told.rx_invalid_descs;
    drops.tx_errors += told.tx_invalid_descs;
    without_chunk += told.rx_dropped;
  }
  counters_.nic = drops;
  counters_.rx_dropped_no_memory = without_chunk;
}

std::size_t XdpLane::transmit(std::span<const TxFrame> frames) {
  Socket& socket = *sockets_.front();
  std::size_t taken = 0;
  for (; taken < frames.size(); ++taken) {
    const TxFrame& frame = frames[taken];
    const std::uint32_t size = frame.header_bytes + frame.payload_bytes;
    const std::uint32_t pieces = (size + layout_.chunk_bytes - 1) / layout_.chunk_bytes;
    if (pieces > layout_.pieces) {
      counters_.tx_dropped += 1;
      continue;
    }
    if (free_tx_.size() < pieces) reap_sent();
    if (free_tx_.size() < pieces || socket.tx.room(pieces) < pieces) break;
    write_frame(frame, size);
    counters_.tx_frames += 1;
    counters_.tx_bytes += size;
  }
  socket.tx.publish();
  if (!socket.tx.is_drained()) socket.wake_for_tx();
  if (taken == frames.size()) return taken;
  if (!is_up()) {
    counters_.tx_dropped += frames.size() - taken;
    return frames.size();
  }
  counters_.tx_ring_full += 1;
  return taken;
}

// Into as many chunks as it fills: there is room for them. The payload is summed as it is copied.
void XdpLane::write_frame(const TxFrame& frame, std::uint32_t size) {
  Socket& socket = *sockets_.front();
  std::uint64_t address = 0;
  std::uint32_t used = layout_.chunk_bytes;  // Bytes in the chunk at `address`.
  const auto close_chunk = [&](bool continues) {
    socket.tx.put({.addr = address, .len = used, .options = continues ? xdp::kContinues : 0U});
  };
  bool is_first = true;
  const auto append = [&](const std::byte* from, std::size_t count, auto&& copy) {
    while (count > 0) {
      if (used == layout_.chunk_bytes) {
        if (!std::exchange(is_first, false)) close_chunk(true);
        address = free_tx_.back();
        free_tx_.pop_back();
        used = 0;
      }
      const std::size_t part = std::min<std::size_t>(count, layout_.chunk_bytes - used);
      copy(socket.at(address + used), from, part);
      used += static_cast<std::uint32_t>(part);
      from += part;
      count -= part;
    }
  };
  const auto append_payload = [&](auto&& copy) {
    for (const Fragment& fragment : std::span(frame.fragments).first(frame.fragment_count))
      append(fragment.data, fragment.size_bytes, copy);
  };
  append(frame.header.data(), frame.header_bytes, std::memcpy);
  if (frame.checksum_offload) {
    std::byte* const ip = socket.at(address) + frame.l2_bytes;
    std::byte* const tcp = ip + frame.l3_bytes;
    if (!frame.is_ipv6())
      wire::store_be16(ip + kIpv4ChecksumOffset, wire::internet_checksum({ip, frame.l3_bytes}));
    wire::Checksum sum;  // The field has the sum of the pseudo header.
    sum.add({tcp, static_cast<std::size_t>(frame.header_bytes - frame.l2_bytes - frame.l3_bytes)});
    append_payload([&](std::byte* to, const std::byte* from, std::size_t count) {
      sum.add_copy(to, {from, count});
    });
    wire::store_be16(tcp + wire::kTcpChecksumOffset, sum.finish());
  } else {
    append_payload(std::memcpy);
  }
  close_chunk(false);
  counters_.tx_copied_bytes += size - frame.header_bytes;
}

}  // namespace ztcp::link
