// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One AF_XDP socket, bound to a queue of an interface, with packet memory and rings of its own. The
// memory is cut into chunks: the first rx_chunks are for received frames, the others for frames to
// send. All chunks for reception begin in the fill ring. A socket without chunks to send has no
// ring for them.
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <linux/if_xdp.h>
#include <memory>
#include <string>

#include "core/fd.h"
#include "core/result.h"
#include "hugepage/mapping.h"
#include "transport/link/xdp/ring.h"

namespace ztcp::link::xdp {

// Newer than the headers of Linux 6.1.
inline constexpr std::uint16_t kUseSeveralPieces = 1U << 4;  // XDP_USE_SG, a flag of bind().
inline constexpr std::uint32_t kContinues = 1U << 0;         // XDP_PKT_CONTD, of a descriptor.

struct SocketConfig {
  unsigned interface_index = 0;
  std::uint32_t queue = 0;
  std::uint32_t chunk_bytes = 2048;  // 2048 or 4096.
  // Powers of two: also the sizes of the rings.
  std::uint32_t rx_chunks = 4096;
  std::uint32_t tx_chunks = 1024;  // 0: it only receives.
  bool several_pieces = false;     // Frames that are longer than a chunk.
  bool may_be_zero_copy = true;
};

class Socket {
 public:
  static Result<std::unique_ptr<Socket>> open(const SocketConfig& config);

  const Fd& fd() const { return fd_; }
  std::uint32_t queue() const { return config_.queue; }
  std::uint32_t chunk_bytes() const { return config_.chunk_bytes; }
  std::uint32_t rx_chunks() const { return config_.rx_chunks; }
  std::uint32_t tx_chunks() const { return config_.tx_chunks; }
  // The NIC reads and writes the packet memory itself.
  bool is_zero_copy() const { return zero_copy_errno_ == 0; }
  // Why the driver refused that: an errno.
  int zero_copy_errno() const { return zero_copy_errno_; }

  // All zero where the kernel does not tell.
  xdp_statistics statistics() const;

  std::byte* at(std::uint64_t address) const { return memory_.data() + address; }
  // Address of the first chunk for frames to send.
  std::uint64_t first_tx_address() const {
    return std::uint64_t{config_.rx_chunks} * config_.chunk_bytes;
  }

  // Makes the kernel look at the ring; a system call, where needs_wakeup().
  void wake_for_fill();
  // The same; tries until the kernel has taken every frame that it can take now.
  void wake_for_tx();

  ConsumerRing<xdp_desc> rx;
  ProducerRing<std::uint64_t> fill;
  ProducerRing<xdp_desc> tx;
  ConsumerRing<std::uint64_t> completion;

 private:
  struct MappedRing {
    MappedRing() = default;
    MappedRing(const MappedRing&) = delete;
    MappedRing& operator=(const MappedRing&) = delete;
    ~MappedRing();
    void* data = nullptr;
    std::size_t size = 0;
  };
  Socket(const SocketConfig& config, Fd fd, hugepage::Mapping memory)
      : config_(config), fd_(std::move(fd)), memory_(std::move(memory)) {}
  Status set_up();
  Status bind();
  template <class Entry>
  Result<RingMemory<Entry>> map_ring(MappedRing& into, const xdp_ring_offset& offsets,
                                     std::uint32_t entries, std::uint64_t which);

  const SocketConfig config_;
  const Fd fd_;
  const hugepage::Mapping memory_;
  MappedRing rx_ring_;
  MappedRing fill_ring_;
  MappedRing tx_ring_;
  MappedRing completion_ring_;
  int zero_copy_errno_ = 0;
};

}  // namespace ztcp::link::xdp
