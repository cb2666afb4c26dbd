// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/tap_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/log.h"
#include "hugepage/mapping.h"
#include "transport/link/frame_overhead.h"

namespace ztcp::link {
namespace {

constexpr std::uint32_t kMaxIpBytes = 65535;
constexpr std::uint16_t kTcpChecksumOffset = 16;

// The offload header of virtio 1.x without its optional tail. <linux/virtio_net.h> is not C++.
struct OffloadHeader {
  static constexpr std::uint8_t kNeedsChecksum = 1;  // flags
  static constexpr std::uint8_t kDataValid = 2;
  static constexpr std::uint8_t kSegmentTcpIpv4 = 1;  // gso_type
  static constexpr std::uint8_t kSegmentTcpIpv6 = 4;

  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_bytes = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);

struct InterfaceRequest : ifreq {
  explicit InterfaceRequest(const std::string& name) : ifreq{} {
    name.copy(ifr_name, IFNAMSIZ - 1);
  }
};

// RFC 1071. The kernel verifies IPv4's own checksum, as for any sender.
void fill_ipv4_checksum(std::span<std::byte> header) {
  header[10] = header[11] = std::byte{0};
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2)
    sum += std::to_integer<std::uint32_t>(header[i]) << 8U |
           std::to_integer<std::uint32_t>(header[i + 1]);
  while (sum >> 16U != 0) sum = (sum & 0xffffU) + (sum >> 16U);
  header[10] = static_cast<std::byte>(~sum >> 8U & 0xffU);
  header[11] = static_cast<std::byte>(~sum & 0xffU);
}

// Layout of received frames in memory: slots of one size. A frame of wire size fits one; a
// super-segment takes several, and its first slot begins with the list of the others' contents.
struct SlotLayout {
  using View = std::span<const std::byte>;
  // For a super-segment in slots of a page.
  static constexpr std::uint32_t kMostPieces = 18;
  static constexpr std::uint32_t kPageBytes = 4096;
  static constexpr std::uint32_t kPageRoomBytes = kPageBytes - (kMostPieces - 1) * sizeof(View);
  static_assert(kMostPieces * kPageRoomBytes >= kMaxIpBytes + kFrameOverheadBytes);

  explicit SlotLayout(const TapConfig& config) {
    const std::uint32_t wire_bytes = config.mtu_bytes + kFrameOverheadBytes;
    const std::uint32_t most_bytes =
        config.offloads ? kMaxIpBytes + kFrameOverheadBytes : wire_bytes;
    room_bytes = config.offloads ? std::max(kPageRoomBytes, wire_bytes) : wire_bytes;
    pieces = (most_bytes + room_bytes - 1) / room_bytes;
    list_bytes = (pieces - 1) * static_cast<std::uint32_t>(sizeof(View));
    slot_bytes = (list_bytes + room_bytes + 63) / 64 * 64;
    constexpr std::uint32_t kMemoryBytes = 32U << 20;
    slots = config.rx_slots != 0 ? config.rx_slots : kMemoryBytes / slot_bytes;
  }

  std::uint32_t room_bytes = 0;
  std::uint32_t pieces = 0;  // Slots of the longest frame.
  std::uint32_t list_bytes = 0;
  std::uint32_t slot_bytes = 0;
  std::uint32_t slots = 0;
};

class TapLink final : public Link {
 public:
  // `memory` holds the layout's slots.
  TapLink(const TapConfig& config, Fd tap, Fd control, hugepage::Mapping memory)
      : config_(config),
        tap_(std::move(tap)),
        control_(std::move(control)),
        memory_(std::move(memory)),
        layout_(config) {
    capabilities_.mtu_bytes = config.mtu_bytes;
    capabilities_.mac = config.mac;
    if (config.offloads) {
      capabilities_.tx_checksum = true;
      capabilities_.rx_checksum = true;
      capabilities_.max_super_segment_bytes = kMaxIpBytes - TxFrame::kHeaderCapacity;
    }
    // A burst of the longest frames can be received, however many are kept.
    constexpr std::uint32_t kBurst = 32;
    const std::uint32_t reserve = std::min(kBurst * layout_.pieces, layout_.slots / 2);
    capabilities_.max_kept_frames = layout_.slots - reserve;
    capabilities_.max_kept_bytes = capabilities_.max_kept_frames * layout_.slot_bytes;
    free_slots_.resize(layout_.slots);
    for (std::size_t i = 0; i < free_slots_.size(); ++i)
      free_slots_[i] = memory_.data() + i * layout_.slot_bytes;
  }

  const LinkCapabilities& capabilities() const override { return capabilities_; }
  const LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return "tap " + config_.interface; }

  std::size_t receive(std::span<RxFrame> frames) override {
    std::size_t count = 0;
    std::array<iovec, 1 + SlotLayout::kMostPieces> parts;
    OffloadHeader offload;
    parts[0] = {&offload, sizeof(offload)};
    while (count < frames.size() && free_slots_.size() >= layout_.pieces) {
      for (std::size_t i = 0; i < layout_.pieces; ++i)
        parts[1 + i] = {room_of(free_slots_[free_slots_.size() - 1 - i]), layout_.room_bytes};
      const ssize_t size = ::readv(tap_.get(), parts.data(), static_cast<int>(1 + layout_.pieces));
      if (size <= static_cast<ssize_t>(sizeof(offload))) {
        gone_ = gone_ || (size < 0 && errno == EBADFD);  // The interface was deleted.
        break;
      }
      RxFrame& frame = frames[count++];
      take_slots(static_cast<std::size_t>(size) - sizeof(offload), frame);
      // NEEDS_CSUM: this kernel made the bytes and left the checksum to a NIC that is never
      // involved.
      frame.checksum_good =
          (offload.flags & (OffloadHeader::kNeedsChecksum | OffloadHeader::kDataValid)) != 0;
      counters_.rx_frames += 1;
      counters_.rx_bytes += static_cast<std::size_t>(size) - sizeof(offload);
    }
    // The kernel goes on queueing, and drops when its queue is full; here only the shortage is
    // visible.
    if (free_slots_.size() < layout_.pieces && count < frames.size())
      counters_.rx_dropped_no_memory += 1;
    return count;
  }

  void release(std::span<RxFrame> frames) override {
    for (RxFrame& frame : frames) {
      if (frame.kept || frame.handle == nullptr) continue;
      for (const SlotLayout::View piece : frame.more) {
        const auto offset = static_cast<std::size_t>(piece.data() - memory_.data());
        free_slots_.push_back(memory_.data() + offset / layout_.slot_bytes * layout_.slot_bytes);
      }
      free_slots_.push_back(static_cast<std::byte*>(std::exchange(frame.handle, nullptr)));
    }
  }

  std::size_t transmit(std::span<const TxFrame> frames) override {
    std::size_t taken = 0;
    for (; taken < frames.size(); ++taken) {
      if (!fits(frames[taken])) {
        counters_.tx_dropped += 1;
        continue;
      }
      if (write_frame(frames[taken])) continue;
      if (errno == EAGAIN || errno == ENOBUFS) {
        counters_.tx_ring_full += 1;
        break;
      }
      counters_.tx_dropped += 1;  // EIO: the interface is down.
    }
    return taken;
  }

  LinkState state() override {
    if (gone_) return LinkState::kGone;
    InterfaceRequest request(config_.interface);
    // Moved into another network namespace after it was opened: frames still flow.
    if (::ioctl(control_.get(), SIOCGIFFLAGS, &request) != 0) return LinkState::kUp;
    return (request.ifr_flags & IFF_UP) != 0 ? LinkState::kUp : LinkState::kDown;
  }

  // The kernel reads any memory of the process: every range gets the same key.
  std::uint32_t map_memory(const void*, std::size_t) override { return 1; }
  void unmap_memory(std::uint32_t) override {}

 private:
  std::byte* room_of(std::byte* slot) const { return slot + layout_.list_bytes; }

  // `size` bytes were read into the slots on top.
  void take_slots(std::size_t size, RxFrame& frame) {
    std::byte* first = free_slots_.back();
    free_slots_.pop_back();
    frame = {};
    frame.handle = first;
    frame.charge_bytes = layout_.slot_bytes;
    frame.head = {room_of(first), std::min<std::size_t>(size, layout_.room_bytes)};
    auto* list = reinterpret_cast<SlotLayout::View*>(first);
    std::size_t count = 0;
    for (std::size_t at = layout_.room_bytes; at < size; at += layout_.room_bytes) {
      std::byte* slot = free_slots_.back();
      free_slots_.pop_back();
      list[count++] = {room_of(slot), std::min<std::size_t>(size - at, layout_.room_bytes)};
      frame.charge_bytes += layout_.slot_bytes;
    }
    frame.more = {list, count};
  }

  bool fits(const TxFrame& frame) const {
    const std::uint32_t ip_bytes = frame.header_bytes - frame.l2_bytes + frame.payload_bytes;
    if (frame.segment_size_bytes == 0) return ip_bytes <= config_.mtu_bytes;
    return config_.offloads && ip_bytes <= kMaxIpBytes;
  }

  bool write_frame(const TxFrame& frame) {
    OffloadHeader offload;
    std::array<std::byte, TxFrame::kHeaderCapacity> header;
    std::copy_n(frame.header.begin(), frame.header_bytes, header.begin());
    if (frame.checksum_offload) {
      offload.flags = OffloadHeader::kNeedsChecksum;
      offload.checksum_start = static_cast<std::uint16_t>(frame.l2_bytes + frame.l3_bytes);
      offload.checksum_offset = kTcpChecksumOffset;
      if (!frame.is_ipv6()) fill_ipv4_checksum({header.data() + frame.l2_bytes, frame.l3_bytes});
    }
    if (frame.segment_size_bytes != 0) {
      offload.gso_type =
          frame.is_ipv6() ? OffloadHeader::kSegmentTcpIpv6 : OffloadHeader::kSegmentTcpIpv4;
      offload.gso_size = frame.segment_size_bytes;
      offload.header_bytes = frame.header_bytes;
      // For segmentation the kernel expects the length in the pseudo-header sum.
      std::byte* sum_field = header.data() + frame.l2_bytes + frame.l3_bytes + kTcpChecksumOffset;
      std::uint32_t sum = std::to_integer<std::uint32_t>(sum_field[0]) << 8U |
                          std::to_integer<std::uint32_t>(sum_field[1]);
      sum += frame.header_bytes - frame.l2_bytes - frame.l3_bytes + frame.payload_bytes;
      sum = (sum & 0xffffU) + (sum >> 16U);
      sum = (sum & 0xffffU) + (sum >> 16U);
      sum_field[0] = static_cast<std::byte>(sum >> 8U);
      sum_field[1] = static_cast<std::byte>(sum & 0xffU);
    }
    std::array<iovec, 2 + TxFrame::kMaxFragments> parts;
    parts[0] = {&offload, sizeof(offload)};
    parts[1] = {header.data(), frame.header_bytes};
    std::size_t size = frame.header_bytes;
    for (std::size_t i = 0; i < frame.fragment_count; ++i) {
      const Fragment& fragment = frame.fragments[i];
      // writev() only reads.
      parts[2 + i] = {const_cast<std::byte*>(fragment.data), fragment.size_bytes};
      size += fragment.size_bytes;
    }
    if (::writev(tap_.get(), parts.data(), 2 + frame.fragment_count) < 0) return false;
    counters_.tx_frames += 1;
    counters_.tx_bytes += size;
    return true;
  }

  TapConfig config_;
  Fd tap_;
  Fd control_;
  hugepage::Mapping memory_;
  SlotLayout layout_;
  std::vector<std::byte*> free_slots_;  // Last in, first out: reuses the memory that is most likely
                                        // cached.
  LinkCapabilities capabilities_;
  LinkCounters counters_;
  bool gone_ = false;
};

tl::unexpected<Error> tell(const TapConfig& config, const char* what, const char* advice) {
  const int why = errno;
  log::warn("tap {}: {} failed: {}; {}", config.interface, what, std::strerror(why), advice);
  return fail(why == EBUSY ? Errc::kBusy : Errc::kSystem, what, why);
}

Status check_mtu(const TapConfig& config, const Fd& control, bool created) {
  InterfaceRequest request(config.interface);
  if (created) {
    request.ifr_mtu = config.mtu_bytes;
    if (::ioctl(control.get(), SIOCSIFMTU, &request) != 0)
      return tell(config, "SIOCSIFMTU", "choose an MTU the kernel allows");
    return {};
  }
  if (::ioctl(control.get(), SIOCGIFMTU, &request) != 0)
    return tell(config, "SIOCGIFMTU", "check that the interface is in this network namespace");
  if (request.ifr_mtu >= config.mtu_bytes) return {};
  log::warn("tap {} has MTU {}, the fabric says {}; run: ip link set {} mtu {}", config.interface,
            request.ifr_mtu, config.mtu_bytes, config.interface, config.mtu_bytes);
  return fail(Errc::kBadConfig, "tap mtu");
}

}  // namespace

Result<std::unique_ptr<Link>> open_tap(const TapConfig& config) {
  if (config.interface.empty() || config.interface.size() >= IFNAMSIZ) {
    log::warn("tap interface \"{}\" must be a name of at most {} letters", config.interface,
              IFNAMSIZ - 1);
    return fail(Errc::kBadConfig, "tap interface");
  }
  Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control) return tell(config, "socket", "check the limit of open files");
  InterfaceRequest request(config.interface);
  const bool created = ::ioctl(control.get(), SIOCGIFFLAGS, &request) != 0;

  Fd tap(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tap) return tell(config, "open /dev/net/tun", "check that the tun module is loaded");
  request = InterfaceRequest(config.interface);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(tap.get(), TUNSETIFF, &request) != 0)
    return tell(config, "TUNSETIFF",
                "check that no other process has it and that it was made for this user "
                "(ip tuntap add NAME mode tap vnet_hdr user USER)");
  const unsigned offloads = config.offloads ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 : 0U;
  if (::ioctl(tap.get(), TUNSETOFFLOAD, offloads) != 0)
    return tell(config, "TUNSETOFFLOAD", "the kernel is older than offloads on tap interfaces");
  ZTCP_CHECK(check_mtu(config, control, created));
  const SlotLayout layout(config);
  auto memory = hugepage::Mapping::anonymous(std::size_t{layout.slot_bytes} * layout.slots);
  if (!memory) return tell(config, "mmap", "check the process's memory limit");
  return std::make_unique<TapLink>(config, std::move(tap), std::move(control), std::move(*memory));
}

}  // namespace ztcp::link
