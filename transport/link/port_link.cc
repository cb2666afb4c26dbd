// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/port_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "core/nic_families.h"
#include "core/process_mark.h"
#include "transport/link/dpdk_host.h"
#include "transport/link/mbuf_layout.h"

namespace ztcp::link {
namespace {

// Ethernet with VLAN, IPv6 and the longest TCP header: least size of a head buffer.
constexpr std::uint16_t kHeadersBytes = 118;
constexpr std::uint64_t kChecksPerSecond = 10;
// Time for a memif client that is down to finish a handshake, and for DPDK's thread to clean up
// after a lost peer, before the port is stopped and started again.
constexpr unsigned kChecksBeforeReconnect = 3;

std::span<const std::byte> bytes_of(const rte_mbuf& mbuf) {
  return {rte_pktmbuf_mtod(&mbuf, const std::byte*), mbuf.data_len};
}

// True when the device has verified both checksums. virtio verifies only TCP's, or reports that the
// sender's host never filled it (NONE: the data are known to be intact); the 20 bytes of IPv4 are
// then summed here. IPv6 has no checksum of its own.
bool checksums_verified(const rte_mbuf& mbuf) {
  const std::uint64_t l4 = mbuf.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
  if (l4 != RTE_MBUF_F_RX_L4_CKSUM_GOOD && l4 != RTE_MBUF_F_RX_L4_CKSUM_NONE) return false;
  const std::uint64_t ip = mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
  if (ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD) return true;
  if (ip == RTE_MBUF_F_RX_IP_CKSUM_BAD) return false;
  const auto* ethernet = rte_pktmbuf_mtod(&mbuf, const rte_ether_hdr*);
  if (mbuf.data_len < sizeof(rte_ether_hdr) + sizeof(rte_ipv4_hdr)) return false;
  if (ethernet->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)) return true;
  if (ethernet->ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) return false;
  const auto* header = rte_pktmbuf_mtod_offset(&mbuf, const rte_ipv4_hdr*, sizeof(rte_ether_hdr));
  if (sizeof(rte_ether_hdr) + rte_ipv4_hdr_len(header) > mbuf.data_len) return false;
  return rte_raw_cksum(header, rte_ipv4_hdr_len(header)) == 0xffff;
}

bool checksums_bad(const rte_mbuf& mbuf) {
  return (mbuf.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD ||
         (mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD;
}

bool reports_wire_speed(std::string_view driver) {
  const NicFamily* known = family_of_dpdk_driver(driver);
  return known != nullptr && known->reports_wire_speed;
}

LinkCapabilities capabilities_of(const OpenPort& open, std::uint16_t queue) {
  const PortAbilities& abilities = open.port.abilities();
  LinkCapabilities capabilities;
  capabilities.mtu_bytes = open.port.config().mtu_bytes;
  capabilities.mac = abilities.mac;
  capabilities.tx_checksum = abilities.tx_tcp_checksum;
  capabilities.rx_checksum = abilities.rx_checksum;
  capabilities.max_super_segment_bytes = abilities.max_super_segment_bytes;
  capabilities.zero_copy = open.options.user_memory != nullptr;
  capabilities.speed_mbps = abilities.speed_mbps;
  capabilities.max_kept_frames = abilities.spare_rx_frames;
  capabilities.max_kept_bytes = std::size_t{abilities.spare_rx_frames} * abilities.rx_frame_bytes;
  capabilities.shard = static_cast<std::uint8_t>(queue);
  capabilities.shards = static_cast<std::uint8_t>(open.port.queues());
  capabilities.spread = open.spread;
  return capabilities;
}

}  // namespace

PortLink::PortLink(std::shared_ptr<OpenPort> open, std::uint16_t queue)
    : open_(std::move(open)),
      port_(open_->port),
      user_memory_(open_->options.user_memory),
      queue_(queue),
      builder_(port_, queue),
      capabilities_(capabilities_of(*open_, queue)),
      has_line_(reports_wire_speed(port_.abilities().driver)),
      check_interval_tsc_(rte_get_tsc_hz() / kChecksPerSecond),
      started_(open_->started.has_value()) {
  if (port_.config().driver_copies) guard_.emplace();
  carrier_ = started_ && read_carrier();
  next_check_tsc_ = rte_rdtsc() + check_interval_tsc_;
}

PortLink::~PortLink() {
  if (user_memory_ != nullptr && !in_forked_child()) open_->bequeath(std::move(abandoned_keys_));
}

std::size_t PortLink::receive(std::span<RxFrame> frames) {
  if (rte_rdtsc() >= next_check_tsc_) check_port();
  if (!started_) return 0;  // DPDK dumps a stack on stderr when a stopped port is polled.
  std::size_t count = 0;
  while (count < frames.size()) {
    const auto want = static_cast<std::uint16_t>(std::min(kBurst, frames.size() - count));
    std::array<rte_mbuf*, kBurst> mbufs;
    std::uint16_t got = 0;
    {
      const MemifGuard::Burst burst(guard_ ? &*guard_ : nullptr);
      got = rte_eth_rx_burst(port_.id(), queue_, mbufs.data(), want);
    }
    for (std::uint16_t i = 0; i < got; ++i) {
      if (i + 1 < got) rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 1U], void*));
      if (to_frame(mbufs[i], frames[count])) {
        ++count;
      } else {
        rte_pktmbuf_free(mbufs[i]);
      }
    }
    if (got < want) break;
  }
  return count;
}

bool PortLink::to_frame(rte_mbuf* mbuf, RxFrame& frame) {
  counters_.rx_frames += 1;
  counters_.rx_bytes += mbuf->pkt_len;
  frame = {};
  frame.handle = mbuf;
  frame.charge_bytes = mbuf->nb_segs * (mbuf->buf_len + static_cast<std::uint32_t>(sizeof(*mbuf)));
  if (mbuf->nb_segs > 1) [[unlikely]] {
    if (!pull_headers(*mbuf)) return false;
    auto& more = private_of<RxPrivate>(mbuf).more;
    std::size_t count = 0;
    for (const rte_mbuf* part = mbuf->next; part != nullptr; part = part->next) {
      if (part->data_len == 0) continue;
      if (count == more.size()) return false;  // Longer than any configured MTU.
      more[count++] = bytes_of(*part);
    }
    frame.more = std::span(more).first(count);
  }
  frame.head = bytes_of(*mbuf);
  if (checksums_bad(*mbuf)) [[unlikely]] {
    // Counted, and left to the stack, which verifies it: some devices report "bad" for frames that
    // they merely can't parse.
    counters_.rx_bad_checksum += 1;
  } else {
    frame.checksum_good = checksums_verified(*mbuf);
  }
  return true;
}

// Moves bytes of the following buffers forward until the first one holds all headers.
bool PortLink::pull_headers(rte_mbuf& head) {
  const auto wanted =
      static_cast<std::uint16_t>(std::min<std::uint32_t>(kHeadersBytes, head.pkt_len));
  rte_mbuf* part = head.next;
  while (head.data_len < wanted) {
    const std::uint16_t piece =
        std::min(part->data_len, static_cast<std::uint16_t>(wanted - head.data_len));
    if (rte_pktmbuf_tailroom(&head) < piece) return false;
    std::memcpy(rte_pktmbuf_mtod_offset(&head, void*, head.data_len), rte_pktmbuf_mtod(part, void*),
                piece);
    head.data_len = static_cast<std::uint16_t>(head.data_len + piece);
    part->data_off = static_cast<std::uint16_t>(part->data_off + piece);
    part->data_len = static_cast<std::uint16_t>(part->data_len - piece);
    part = part->next;
  }
  return true;
}

void PortLink::release(std::span<RxFrame> frames) {
  std::array<rte_mbuf*, kBurst> mbufs;
  unsigned count = 0;
  for (RxFrame& frame : frames) {
    if (frame.kept || frame.handle == nullptr) continue;
    mbufs[count++] = static_cast<rte_mbuf*>(std::exchange(frame.handle, nullptr));
    if (count < mbufs.size()) continue;
    rte_pktmbuf_free_bulk(mbufs.data(), count);
    count = 0;
  }
  rte_pktmbuf_free_bulk(mbufs.data(), count);
}

std::size_t PortLink::transmit(std::span<const TxFrame> frames) {
  if (!started_) {
    counters_.tx_dropped += frames.size();
    return frames.size();
  }
  std::size_t taken = 0;
  while (taken < frames.size()) {
    std::array<rte_mbuf*, kTxBurst> mbufs;
    // Number of frames taken once mbufs[0..i] are sent: dropped ones have no mbuf.
    std::array<std::size_t, kTxBurst + 1> taken_with;
    taken_with[0] = taken;
    std::uint16_t built = 0;
    std::uint64_t bytes = 0;
    bool any_offload = false;
    bool out_of_memory = false;
    std::size_t next = taken;
    while (next < frames.size() && built < kTxBurst) {
      const TxFrame& frame = frames[next];
      const TxBuilder::Built result = builder_.build(frame);
      if (result.outcome == TxBuilder::Outcome::kNoMemory) {
        out_of_memory = true;
        break;
      }
      ++next;
      if (result.outcome == TxBuilder::Outcome::kImpossible) {
        counters_.tx_dropped += 1;
        taken_with[built] = next;
        continue;
      }
      any_offload |= frame.checksum_offload;
      bytes += result.mbuf->pkt_len;
      mbufs[built++] = result.mbuf;
      taken_with[built] = next;
    }
    std::uint16_t sent = 0;
    if (built > 0) {
      const std::uint16_t ready =
          any_offload ? rte_eth_tx_prepare(port_.id(), queue_, mbufs.data(), built) : built;
      {
        const MemifGuard::Burst burst(guard_ ? &*guard_ : nullptr);
        sent = rte_eth_tx_burst(port_.id(), queue_, mbufs.data(), ready);
      }
      std::uint64_t unsent_bytes = 0;
      for (std::uint16_t i = sent; i < built; ++i) unsent_bytes += mbufs[i]->pkt_len;
      rte_pktmbuf_free_bulk(mbufs.data() + sent, static_cast<unsigned>(built - sent));
      counters_.tx_frames += sent;
      counters_.tx_bytes += bytes - unsent_bytes;
      line_.add(bytes - unsent_bytes);
      if (sent == ready && ready < built) {
        // The driver will always refuse the next frame: drop it, as a cable would.
        counters_.tx_dropped += 1;
        taken = taken_with[sent + 1U];
        continue;
      }
    }
    taken = taken_with[sent];
    if (sent < built) {
      if (!is_up()) {
        counters_.tx_dropped += frames.size() - taken;
        taken = frames.size();
      } else {
        counters_.tx_ring_full += 1;
      }
      break;
    }
    if (out_of_memory) {
      // All buffers are in the ring, and the driver frees them only when it is called.
      if (built == 0 && port_.config().drops_at_full_ring)
        rte_eth_tx_burst(port_.id(), queue_, nullptr, 0);
      break;
    }
  }
  counters_.tx_copied_bytes = builder_.copied_bytes();
  return taken;
}

LinkState PortLink::state() {
  if (const LinkState device = open_->device_state(); is_lost(device)) return device;
  if (!started_) return LinkState::kDown;
  // memif's carrier is a flag in memory, and the loss of its peer must be seen before the next
  // burst.
  const bool carrier = port_.config().driver_copies ? read_carrier() : carrier_;
  return carrier ? LinkState::kUp : LinkState::kDown;
}

// Called by check_port() alone: state() runs in every turn that finds the ring full.
bool PortLink::read_carrier() {
  if (queue_ == 0) open_->read_carrier();
  if (has_line_) line_.set_speed(open_->speed_mbps());
  return open_->has_carrier();
}

TransmitRoom PortLink::transmit_room(TimePoint now) {
  if (line_.speed_mbps() == 0) return {};
  return {.frames = SIZE_MAX,
          .tells_bytes = true,
          .taken_bytes = counters_.tx_bytes,
          .queued_bytes = line_.queued_bytes(now)};
}

std::uint32_t PortLink::map_memory(const void* address, std::size_t size_bytes) {
  // memif's driver reads any memory of the process: every range gets the same key.
  constexpr std::uint32_t kReadable = 1;
  if (port_.config().driver_copies) return kReadable;
  return user_memory_ == nullptr ? kUnmapped : user_memory_->acquire(address, size_bytes);
}

void PortLink::unmap_memory(std::uint32_t key) {
  if (user_memory_ == nullptr || key == kUnmapped) return;
  {
    const std::scoped_lock lock(abandoned_mutex_);
    if (has_abandoned_) {
      user_memory_->retire(key);
      abandoned_keys_.push_back(key);
      return;
    }
  }
  user_memory_->release(key);
}

// A ring may stand still for long, without carrier or when a switch sends pause frames. A device
// that then reads memory that the IOMMU no longer allows may be reset, and all connections with it.
void PortLink::note_abandoned_payload() {
  if (user_memory_ == nullptr || !started_ || builder_.attached() == 0) return;
  const std::scoped_lock lock(abandoned_mutex_);
  has_abandoned_ = true;
  abandoned_until_frame_ = counters_.tx_frames + port_.tx_ring();
}

void PortLink::unmap_abandoned() {
  std::vector<std::uint32_t> keys;
  {
    const std::scoped_lock lock(abandoned_mutex_);
    has_abandoned_ = false;
    keys.swap(abandoned_keys_);
  }
  for (const std::uint32_t key : keys) user_memory_->release(key);
}

// Held frames stay in memory of this process, and memory that the device may read stays mapped
// until the device is released.
void PortLink::leave_lost_port() {
  started_ = false;
  if (!has_left_ && user_memory_ != nullptr) {
    const std::scoped_lock lock(abandoned_mutex_);
    has_abandoned_ = true;
  }
  if (!std::exchange(has_left_, true)) open_->leave();
  if (has_abandoned_ && open_->is_given_back()) unmap_abandoned();
}

void PortLink::check_port() {
  next_check_tsc_ = rte_rdtsc() + check_interval_tsc_;
  if (dpdk_panicked()) {
    started_ = false;
    return;
  }
  if (is_lost(open_->device_state())) return leave_lost_port();
  if (has_abandoned_ && (builder_.attached() == 0 || counters_.tx_frames >= abandoned_until_frame_))
    unmap_abandoned();
  carrier_ = started_ && read_carrier();
  if (queue_ == 0) counters_.nic = open_->drops();
  const bool up = is_up();
  checks_down_ = up ? 0 : checks_down_ + 1;
  if (open_->options.reconnects && !up && (!started_ || checks_down_ >= kChecksBeforeReconnect)) {
    if (started_) port_.stop();
    started_ = port_.start().has_value();
    checks_down_ = 0;
  }
}

}  // namespace ztcp::link
