// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two links joined in memory, for tests: frames that one transmits the other receives, copied into
// one of a bounded number of frames. Each end belongs to one thread; the two may be different
// threads. Nothing is lost or reordered; a full link takes no more frames.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "transport/link/link.h"

namespace ztcp::link {

struct MemoryLinkOptions {
  std::uint16_t mtu_bytes = 1500;
  std::uint32_t frames = 256;  // Each way, including those that the receiver keeps.
  std::array<MacAddress, 2> macs = {MacAddress{{2, 0, 0, 0, 0, 1}}, MacAddress{{2, 0, 0, 0, 0, 2}}};
  // Claims checksum offload; received frames are then checksum_good.
  bool checksum_offload = false;
  // Non-zero: accepts super-segments up to this payload and delivers them whole, like a NIC with
  // segmentation together with one with receive coalescing.
  std::uint32_t max_super_segment_bytes = 0;
  // If set: the state that this end reports, changed by any thread. An end that is not up receives
  // nothing and drops the frames it is to send.
  std::array<const std::atomic<LinkState>*, 2> states{};
};

using LinkPair = std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>>;
LinkPair make_memory_links(const MemoryLinkOptions& options = {});

}  // namespace ztcp::link
