// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shm_link.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/link/frame_overhead.h"
#include "transport/link/mesh_link.h"
#include "transport/link/shm_meeting.h"
#include "transport/link/shm_region.h"

namespace ztcp::link {
namespace {

// Half of a core's second-level cache, or all of it.
constexpr std::uint32_t kCachedBytes = 1U << 20;
constexpr std::uint32_t kLeastSlots = 64;
constexpr std::uint32_t kLeastSlotBytes = 2048;
constexpr std::uint32_t kFreeSlots = 32;  // Always left free, however many the receiver keeps.
constexpr Duration kCheckInterval = std::chrono::milliseconds(20);

std::uint32_t slot_bytes(std::uint16_t mtu_bytes) {
  return std::max<std::uint32_t>(kLeastSlotBytes,
                                 (mtu_bytes + kFrameOverheadBytes + 63U) / 64 * 64);
}

ShmShape shape_of(const ShmConfig& config) {
  ShmShape shape;
  shape.slot_bytes = slot_bytes(config.mtu_bytes);
  shape.slot_count =
      config.slots != 0
          ? config.slots
          : std::bit_ceil(std::clamp(kCachedBytes / shape.slot_bytes, kLeastSlots, kMaxShmSlots));
  return shape;
}

// The memory of one connection with the peer, and the views through which the stack reads its
// slots.
class Connection {
 public:
  explicit Connection(std::uint32_t slots) : views_(slots) {}
  // To be called before anything else.
  void begin(std::unique_ptr<ShmRegion> region) { region_ = std::move(region); }

  ShmSender& sender() { return region_->sender(); }
  ShmReceiver& receiver() { return region_->receiver(); }

  void show(const ShmNote& note, RxFrame& frame) {
    View& view = views_[note.slot];
    const std::byte* bytes = receiver().slot(note);
    // Copies whole lines, for any header length: cheaper, and a slot has them.
    std::memcpy(view.header.data(), bytes, view.header.size());
    view.payload = {bytes + note.header_bytes, note.payload_bytes};
    view.owner = this;
    frame = {};
    frame.head = std::span(view.header).first(note.header_bytes);
    if (note.payload_bytes != 0) frame.more = {&view.payload, 1};
    frame.handle = &view;
    frame.checksum_good = true;
  }

  // The connection that has shown the frame.
  static Connection& owner_of(const RxFrame& frame) {
    return *static_cast<const View*>(frame.handle)->owner;
  }
  void give_back(const RxFrame& frame) {
    const auto* view = static_cast<const View*>(frame.handle);
    receiver().give_back(static_cast<std::uint32_t>(view - views_.data()));
  }

 private:
  struct View {
    std::array<std::byte, TxFrame::kHeaderCapacity> header;
    std::span<const std::byte> payload;
    Connection* owner = nullptr;
  };
  std::unique_ptr<ShmRegion> region_;
  std::vector<View> views_;
};

class ShmLink final : public Link {
 public:
  ShmLink(const ShmConfig& config, ShmMeeting meeting)
      : meeting_(std::move(meeting)), shape_(shape_of(config)) {
    description_ =
        fmt::format("shared memory {} {}", config.socket_path, config.server ? "server" : "client");
    capabilities_.mtu_bytes = config.mtu_bytes;
    capabilities_.mac = config.mac;
    capabilities_.tx_checksum = capabilities_.rx_checksum = true;
    capabilities_.trusted = true;
    capabilities_.max_kept_frames = shape_.slot_count - std::min(kFreeSlots, shape_.slot_count / 2);
    capabilities_.max_kept_bytes = capabilities_.max_kept_frames * shape_.slot_bytes;
  }

  const LinkCapabilities& capabilities() const override { return capabilities_; }
  const LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return description_; }
  LinkState state() override { return meeting_.is_up() ? LinkState::kUp : LinkState::kDown; }

  std::size_t receive(std::span<RxFrame> frames) override {
    if (now_ == nullptr) return 0;
    std::size_t count = 0;
    while (count < frames.size()) {
      ShmNote note;
      const ShmReceiver::Outcome outcome = now_->receiver().take(note);
      if (outcome == ShmReceiver::Outcome::kNothing) break;
      if (outcome == ShmReceiver::Outcome::kBroken) [[unlikely]] {
        end_connection("the peer announces invalid frames: it runs another libnccl-net.so");
        break;
      }
      if (const std::byte* next = now_->receiver().following()) {
        __builtin_prefetch(next);
        __builtin_prefetch(next + 64);
      }
      RxFrame& frame = frames[count++];
      now_->show(note, frame);
      frame.charge_bytes = shape_.slot_bytes;
      counters_.rx_frames += 1;
      counters_.rx_bytes += std::uint64_t{note.header_bytes} + note.payload_bytes;
    }
    return count;
  }

  void release(std::span<RxFrame> frames) override {
    for (RxFrame& frame : frames) {
      if (frame.kept || frame.handle == nullptr) continue;
      Connection::owner_of(frame).give_back(frame);
      frame.handle = nullptr;
    }
    if (now_ != nullptr) now_->receiver().publish();
  }

  std::size_t transmit(std::span<const TxFrame> frames) override {
    if (!meeting_.is_up()) {
      counters_.tx_dropped += frames.size();
      return frames.size();
    }
    ShmSender& sender = now_->sender();
    if (!sender.collect()) [[unlikely]] {
      end_connection(
          "the peer returns frames that were not sent to it: it runs another "
          "libnccl-net.so");
      counters_.tx_dropped += frames.size();
      return frames.size();
    }
    std::size_t taken = 0;
    for (const TxFrame& frame : frames) {
      const std::uint32_t size = frame.header_bytes + frame.payload_bytes;
      if (size - frame.l2_bytes > capabilities_.mtu_bytes) [[unlikely]] {
        counters_.tx_dropped += 1;
        ++taken;
        continue;
      }
      if (sender.room() == 0) {
        counters_.tx_ring_full += 1;
        break;
      }
      copy(frame, sender.next_slot());
      sender.push(frame.header_bytes, frame.payload_bytes);
      counters_.tx_frames += 1;
      counters_.tx_bytes += size;
      counters_.tx_copied_bytes += frame.payload_bytes;
      ++taken;
    }
    sender.publish();
    return taken;
  }

  TransmitRoom transmit_room(TimePoint now) override {
    if (now >= next_check_) check(now);
    return {};  // Sets no limit; transmit() returns less instead.
  }

  // Any memory of the process can be copied: every range gets the same key.
  std::uint32_t map_memory(const void*, std::size_t) override { return 1; }
  void unmap_memory(std::uint32_t) override {}

 private:
  static void copy(const TxFrame& frame, std::byte* to) {
    static_assert(TxFrame::kHeaderCapacity <= kLeastSlotBytes);
    std::memcpy(to, frame.header.data(),
                frame.header.size());  // All of it: the payload overwrites the rest.
    to += frame.header_bytes;
    for (const Fragment& fragment : std::span(frame.fragments).first(frame.fragment_count)) {
      if (fragment.size_bytes != 0) std::memcpy(to, fragment.data, fragment.size_bytes);
      to += fragment.size_bytes;
    }
  }

  // The meeting knows the present peer; the memory of an earlier one stays until all of it was
  // read.
  void check(TimePoint now) {
    next_check_ = now + kCheckInterval;
    std::erase_if(former_, [](const auto& one) { return one->receiver().held() == 0; });
    // Reserves all memory that a meeting needs, so that it can't fail half-way.
    if (!meeting_.is_up() && next_ == nullptr) {
      next_ = std::make_unique<Connection>(shape_.slot_count);
      former_.reserve(former_.size() + 2);  // For now_ and later, when it has ended, next_.
    }
    std::unique_ptr<ShmRegion> region = meeting_.poll(now);
    if (region == nullptr) return;
    retire();
    next_->begin(std::move(region));
    now_ = std::move(next_);
  }

  void end_connection(std::string_view why) {
    meeting_.drop(why);
    retire();
  }

  void retire() {
    if (now_ != nullptr) former_.push_back(std::move(now_));
  }

  ShmMeeting meeting_;
  const ShmShape shape_;
  std::string description_;
  LinkCapabilities capabilities_;
  LinkCounters counters_;
  TimePoint next_check_{};
  std::unique_ptr<Connection> now_;
  std::unique_ptr<Connection> next_;  // Made before the next meeting.
  std::vector<std::unique_ptr<Connection>> former_;
};

}  // namespace

Result<std::unique_ptr<Link>> open_shm(const ShmConfig& config) {
  ShmMeetingConfig meeting;
  meeting.socket_path = config.socket_path;
  meeting.server = config.server;
  meeting.mac = config.mac;
  meeting.peer_mac = config.peer_mac;
  meeting.mtu_bytes = config.mtu_bytes;
  meeting.shape = shape_of(config);
  return std::make_unique<ShmLink>(config, ZTCP_TRY(ShmMeeting::open(std::move(meeting))));
}

Result<std::unique_ptr<Link>> open_shm_mesh(const ShmConfig& nic, const std::vector<ShmPeer>& peers,
                                            Duration longest_sleep) {
  std::vector<MeshPort> ports;
  for (const ShmPeer& peer : peers) {
    ShmConfig port = nic;
    port.socket_path = peer.socket_path;
    port.server = peer.serves;
    port.peer_mac = peer.mac;
    ports.push_back({peer.mac, ZTCP_TRY(open_shm(port))});
  }
  return make_mesh(std::move(ports), std::max(kMeshStallTimeout, 2 * longest_sleep));
}

}  // namespace ztcp::link
