// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Packet memory of the AF_XDP sockets of an interface. A process locks it: for each of its queues
// chunks of received frames, and for each lane chunks of frames to send. It consists of ordinary
// pages, cut into chunks.
#pragma once

#include <cstdint>

namespace ztcp::hugepage {

// The kernel keeps this much of a chunk in front of a received frame.
inline constexpr std::uint32_t kXdpHeadroomBytes = 256;
// Bytes of a frame beside its IP packet.
inline constexpr std::uint32_t kXdpOverheadBytes = 18;
inline constexpr std::uint32_t kXdpLargestChunkBytes = 4096;
inline constexpr std::uint32_t kXdpRxChunks = 4096;  // Each queue has as many.
inline constexpr std::uint32_t kXdpTxChunks = 1024;  // Each lane.

// Places of the frames of an MTU.
struct XdpChunks {
  explicit constexpr XdpChunks(std::uint32_t mtu_bytes) {
    const std::uint32_t frame_bytes = mtu_bytes + kXdpOverheadBytes;
    chunk_bytes = frame_bytes + kXdpHeadroomBytes <= kXdpLargestChunkBytes / 2
                      ? kXdpLargestChunkBytes / 2
                      : kXdpLargestChunkBytes;
    const std::uint32_t room_bytes = chunk_bytes - kXdpHeadroomBytes;
    pieces = (frame_bytes + room_bytes - 1) / room_bytes;
  }
  std::uint32_t chunk_bytes = 0;
  std::uint32_t pieces = 0;  // The longest frame's.
};

// The largest MTU whose frames have at most this many pieces.
constexpr std::uint32_t xdp_largest_mtu(std::uint32_t pieces) {
  return pieces * (kXdpLargestChunkBytes - kXdpHeadroomBytes) - kXdpOverheadBytes;
}

// Locked by a process.
constexpr std::uint64_t xdp_memory_bytes(std::uint32_t mtu_bytes, std::uint64_t queues,
                                         std::uint64_t lanes,
                                         std::uint32_t rx_chunks = kXdpRxChunks) {
  return (queues * rx_chunks + lanes * kXdpTxChunks) * XdpChunks(mtu_bytes).chunk_bytes;
}

}  // namespace ztcp::hugepage
