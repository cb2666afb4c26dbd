// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The types that cross the link seam: views of memory, never rte_mbufs. A frame is an Ethernet
// frame without its FCS.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ztcp {

// Bytes of user memory. The code that queues them keeps them unchanged until it is told that they
// are no longer needed. `memory_key` is the key that Link::map_memory() returned for the range, or
// kUnmapped: then the link copies before transmit() returns.
inline constexpr std::uint32_t kUnmapped = 0;
struct Fragment {
  const std::byte* data = nullptr;
  std::uint32_t size_bytes = 0;
  std::uint32_t memory_key = kUnmapped;
};

// A received frame: a view that stays valid until it is given back with Link::release(). `head`
// holds at least all Ethernet, IP and TCP headers (the link sees to it) and usually the payload;
// `more` continues it where the driver received into several buffers, and lives as long as the
// frame does.
struct RxFrame {
  std::span<const std::byte> head;
  std::span<const std::span<const std::byte>> more;
  void* handle = nullptr;          // The link's own; opaque to all other code.
  std::uint32_t charge_bytes = 0;  // Memory the frame occupies while it is held.
  bool checksum_good = false;      // The NIC verified IP and TCP checksums. False: unknown.
  bool kept = false;               // Set by the stack when it holds the frame after on_frames().
  std::uint8_t port = 0;           // The receiving port, of a link with several.
  // Set by the stack of a shard (link/shards.h): the shard that release() hands the frame to.
  std::uint8_t hand_to = kNobody;
  static constexpr std::uint8_t kNobody = 0xff;
};

// A frame to send: finished headers plus payload that may point at user memory.
struct TxFrame {
  static constexpr std::size_t kHeaderCapacity = 128;  // Ethernet + VLAN + IPv6 + full TCP: 118.
  static constexpr std::size_t kMaxFragments = 8;

  std::array<std::byte, kHeaderCapacity> header;
  std::uint16_t header_bytes = 0;
  std::uint8_t l2_bytes = 0;  // Ethernet, VLAN included.
  // IP: 20, for IPv6 40. header_bytes - l2 - l3 is the TCP header; 0 for ARP.
  std::uint8_t l3_bytes = 0;
  std::uint8_t fragment_count = 0;
  // The TCP checksum field holds only the pseudo-header sum (of a super-segment: without its
  // length) and the IPv4 checksum is zero; the link finishes both. Set only where
  // LinkCapabilities::tx_checksum.
  bool checksum_offload = false;
  // The payload may change once transmit() has returned, so the link copies it: in a
  // retransmission, an ACK of the first copy may release the memory.
  bool copy_payload = false;
  // Non-zero: a super-segment to be cut into TCP segments of this many payload bytes. Set only
  // where LinkCapabilities::max_super_segment_bytes allows it.
  std::uint16_t segment_size_bytes = 0;
  std::uint32_t payload_bytes = 0;
  std::array<Fragment, kMaxFragments> fragments;

  bool is_ipv6() const { return l3_bytes == 40; }
};

}  // namespace ztcp
