// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The link of one lane of an AF_XDP interface: some of its queues, each with a socket. The first
// one's socket sends. Carries TCP segments alone; HostAddressLink wraps it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hugepage/xdp_memory.h"
#include "transport/link/frame_overhead.h"
#include "transport/link/link.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/host_tables.h"
#include "transport/link/xdp/interface.h"
#include "transport/link/xdp/socket.h"
#include "transport/link/xdp_link.h"

namespace ztcp::link {

// A frame of the largest MTU (config/schema.toml) in chunks of a page.
inline constexpr std::size_t kMostXdpPieces = 3;
static_assert(hugepage::xdp_largest_mtu(kMostXdpPieces) >= 9216);
static_assert(hugepage::kXdpOverheadBytes == kFrameOverheadBytes);

// Shared by the links of an interface's queues; the last one takes the program off.
struct XdpPort {
  XdpConfig config;
  xdp::InterfaceFacts interface;
  xdp::Attachment attachment;
  std::shared_ptr<xdp::HostTables> tables;
  std::string description;
};

class XdpLane final : public Link {
 public:
  XdpLane(std::shared_ptr<XdpPort> port, std::vector<std::unique_ptr<xdp::Socket>> sockets,
          std::size_t lane, std::size_t lanes);

  const LinkCapabilities& capabilities() const override { return capabilities_; }
  const LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return port_->description; }
  LinkState state() override { return port_->tables->state(); }
  // Memory of the process is always copied.
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}

  std::size_t receive(std::span<RxFrame> frames) override;
  void release(std::span<RxFrame> frames) override;
  std::size_t transmit(std::span<const TxFrame> frames) override;
  TransmitRoom transmit_room(TimePoint now) override {
    if (now >= next_reading_) read_drops(now);
    return {};
  }

 private:
  // A received frame, by the number of its first chunk.
  struct Frame {
    std::size_t socket = 0;
    std::array<std::uint64_t, kMostXdpPieces> addresses{};
    std::uint32_t pieces = 0;
    std::array<std::span<const std::byte>, kMostXdpPieces - 1> more{};
  };

  std::size_t receive_from(std::size_t index, std::span<RxFrame> frames);
  bool take_frame(std::size_t index, std::uint32_t pieces, RxFrame& frame);
  void give_back(const Frame& frame);
  void reap_sent();
  void read_drops(TimePoint now);
  void write_frame(const TxFrame& frame, std::uint32_t size);

  const std::shared_ptr<XdpPort> port_;
  const std::vector<std::unique_ptr<xdp::Socket>> sockets_;  // The first one sends.
  const hugepage::XdpChunks layout_;
  const std::uint32_t rx_chunks_;  // For each queue.
  std::vector<Frame> frames_;
  std::vector<std::uint64_t> free_tx_;
  std::size_t next_socket_ = 0;  // Where receive() begins: no queue starves another.
  TimePoint next_reading_{};
  LinkCapabilities capabilities_;
  LinkCounters counters_;
};

}  // namespace ztcp::link
