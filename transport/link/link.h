// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Source and sink of frames: a DPDK port, a tun/tap descriptor, or memory in tests. Everything is
// burst-shaped and belongs to the one thread that owns the NIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/address.h"
#include "core/clock.h"
#include "core/frame.h"
#include "core/link_state.h"
#include "core/result.h"
#include "transport/link/nic_drops.h"
#include "transport/wire/receive_spread.h"

namespace ztcp::link {

// Fixed once the link exists.
struct LinkCapabilities {
  std::uint16_t mtu_bytes = 1500;  // IP packet size: 1500, 9000, up to 65280 on memif.
  MacAddress mac;
  bool tx_checksum = false;  // Finishes IPv4 and TCP checksums, TCP's over IPv6 too (see
                             // TxFrame::checksum_offload).
  // tx_checksum is the link's own work, in the pass that copies the frame: no device does it.
  bool sums_as_it_copies = false;
  bool rx_checksum = false;  // Sets RxFrame::checksum_good where it verified them.
  // Frames stay in this machine's memory, and their receiver has agreed: checksums are neither
  // computed nor verified, and the two flags above mean that they need not be.
  bool trusted = false;
  // Largest payload of a TxFrame with segment_size_bytes set; 0: the link can't segment.
  std::uint32_t max_super_segment_bytes = 0;
  // The device reads mapped fragments in place; false: they are copied once.
  bool zero_copy = false;
  std::uint32_t speed_mbps = 0;  // 0: unknown.
  // Limits for received frames that are kept at once, by RxFrame::charge_bytes and by number: while
  // that many are kept, the link still has frames to receive a burst with.
  std::size_t max_kept_bytes = 0;
  std::size_t max_kept_frames = 0;
  // For links that are the queues of one port and hand each other frames (shards.h): the index of
  // this one, their number, and how the device chooses among them; null: unknown.
  std::uint8_t shard = 0;
  std::uint8_t shards = 1;
  std::shared_ptr<const wire::ReceiveSpread> spread{};
};

// Counters are plain and owned by the link's thread; others read them with relaxed loads.
struct LinkCounters {
  std::uint64_t rx_frames = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t rx_dropped_no_memory = 0;  // By the link itself; the NIC counts its own drops.
  std::uint64_t rx_bad_checksum = 0;
  std::uint64_t rx_mailbox_full = 0;  // The mailbox of another shard was full.
  std::uint64_t tx_frames = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t tx_ring_full = 0;
  std::uint64_t tx_dropped = 0;  // Link down, or a frame that the link can never carry.
  std::uint64_t tx_copied_bytes = 0;
  NicDrops nic;  // The whole NIC's; told by the link of its first queue.
};

// How much a link would accept now.
struct TransmitRoom {
  // transmit() accepts that many frames of any kind. If the device does not report its ring, the
  // link sets no limit here; transmit() then returns less.
  std::size_t frames = SIZE_MAX;
  // Whether the two below are known: the bytes it ever accepted, and those that have not left the
  // device yet (never too high: an estimate errs to the low side).
  bool tells_bytes = false;
  std::uint64_t taken_bytes = 0;
  std::uint64_t queued_bytes = 0;
};

class Link {
 public:
  virtual ~Link() = default;

  virtual const LinkCapabilities& capabilities() const = 0;

  // Returns up to frames.size() received frames; each must be given back by release(), in any
  // order.
  virtual std::size_t receive(std::span<RxFrame> frames) = 0;
  // Skips frames with kept == true: their holder releases them later.
  virtual void release(std::span<RxFrame> frames) = 0;

  // Sends a prefix of `frames` and returns its length; the rest did not fit, and the caller offers
  // it again. A frame that can never be sent (down link, impossible size) is dropped and counted,
  // as a cable would.
  virtual std::size_t transmit(std::span<const TxFrame> frames) = 0;
  // Called in each turn before frames are offered, those left from the last turn included, so that
  // a link may take the time from it. Never accesses the device.
  virtual TransmitRoom transmit_room(TimePoint now) {
    static_cast<void>(now);
    return {};
  }

  virtual LinkState state() = 0;
  bool is_up() { return state() == LinkState::kUp; }

  // Lets the device read [address, address + size_bytes) in place. Returns a key for
  // Fragment::memory_key; kUnmapped when the range is served by copying (a link that always copies,
  // or the map is full): never a failure. Ranges may overlap; keys are refcounted inside. The only
  // two calls that other threads may make, at any time.
  virtual std::uint32_t map_memory(const void* address, std::size_t size_bytes) = 0;
  virtual void unmap_memory(std::uint32_t key) = 0;
  // To be called on the link's thread: accepted frames may point at memory that its owner is about
  // to get back before the bytes were acknowledged. Memory unmapped from now on stays mapped for
  // the device until the device holds none of these frames any more.
  virtual void note_abandoned_payload() {}

  virtual const LinkCounters& counters() const = 0;

  // For the init line and warnings: "memif /run/.../0.sock client", "0000:3b:00.0 net_virtio".
  virtual std::string describe() const = 0;
};

}  // namespace ztcp::link
