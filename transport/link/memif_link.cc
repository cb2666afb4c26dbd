// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <rte_ethdev.h>

#include "core/log.h"
#include "core/shell_word.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/frame_overhead.h"
#include "transport/link/port_link.h"
#include "transport/link/process_limits.h"
#include "transport/link/socket_file.h"

namespace ztcp::link {
namespace {

constexpr std::uint32_t kRingBytes = 4U << 20;  // About one direction's share of the L3 cache.
constexpr std::uint32_t kRxPoolBytes = 48U << 20;

// Size of a ring buffer: larger than one frame. A frame over several descriptors is slower, and
// loses its "more follows" flags in DPDK 22.11 when the ring wraps.
std::uint32_t buffer_bytes(std::uint16_t mtu_bytes) {
  return std::max<std::uint32_t>(2048, (mtu_bytes + kFrameOverheadBytes + 64U) / 64 * 64);
}

std::uint8_t ring_size_log2(const MemifConfig& config) {
  if (config.ring_size_log2 != 0) return config.ring_size_log2;
  const std::uint32_t slots = std::clamp(kRingBytes / buffer_bytes(config.mtu_bytes), 32U, 1024U);
  return static_cast<std::uint8_t>(std::bit_width(slots) - 1);
}

std::uint32_t rx_frames(const MemifConfig& config) {
  if (config.rx_frames != 0) return config.rx_frames;
  return std::clamp(kRxPoolBytes / buffer_bytes(config.mtu_bytes), 1024U, 8192U) - 1;
}

// Nothing stays in flight: one burst of the longest chains, and some spare.
constexpr std::uint32_t kTxHeaderFrames = 191;
static_assert(kTxHeaderFrames > PortLink::kTxBurst * (1 + TxFrame::kMaxFragments));

// The driver of DPDK 23.07 to 25.11 has another transmit path for pools with buffers that fit the
// ring's: there it gives every fragment a descriptor and never clears a descriptor's "more follows"
// flag, so after the ring has wrapped, frames run into each other. Buffers one byte larger than the
// ring's keep frames on the usual path, one buffer each.
std::uint16_t tx_header_room_bytes(std::uint16_t mtu_bytes) {
  return static_cast<std::uint16_t>(buffer_bytes(mtu_bytes) + 1);
}

// The same driver has another receive path for pools with buffers that hold the ring's: there it
// needs 32 free buffers before it takes a single frame, and trusts the peer that no frame is
// longer. Buffers one byte smaller keep it on the usual path.
std::uint16_t rx_room_bytes(std::uint16_t mtu_bytes) {
  return static_cast<std::uint16_t>(buffer_bytes(mtu_bytes) - 1);
}

// Memory of a pool of `count` buffers. In plain memory an object that fits into a page does not
// cross a page boundary; a larger one begins on a page of its own.
std::uint64_t pool_bytes(std::uint32_t count, std::uint32_t room_bytes) {
  constexpr std::uint32_t kPerMbufBytes = 512;  // Headroom, private area, pool overhead.
  constexpr std::uint32_t kPageBytes = 4096;
  const std::uint64_t object = std::uint64_t{room_bytes} + kPerMbufBytes;
  const std::uint64_t footprint = object <= kPageBytes
                                      ? kPageBytes / (kPageBytes / object)
                                      : (object + kPageBytes - 1) / kPageBytes * kPageBytes;
  return count * footprint;
}

Status check(const MemifConfig& config) {
  if (config.mtu_bytes < 576 || config.mtu_bytes > kMaxMemifMtuBytes) {
    log::warn("memif {}: MTU {} is not between 576 and {}; change mtu in the fabric config",
              config.socket_path, config.mtu_bytes, kMaxMemifMtuBytes);
    return fail(Errc::kBadConfig, "memif mtu");
  }
  // The path travels through DPDK's "key=value,..." syntax.
  const bool plain = config.socket_path.find_first_of(",=[]\"\n ") == std::string::npos;
  if (config.socket_path.empty() || config.socket_path.front() != '/' || !plain ||
      config.socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    log::warn(
        "memif socket \"{}\" must be an absolute path of at most {} bytes without blanks and "
        "any of , = [ ] \"; choose a shorter or plainer run directory",
        config.socket_path, sizeof(sockaddr_un::sun_path) - 1);
    return fail(Errc::kBadConfig, "memif socket");
  }
  return {};
}

// DPDK reports little about failures, so its requirements are checked one after the other.
std::string mending_advice(const MemifConfig& config) {
  const std::string folder = config.socket_path.substr(0, config.socket_path.rfind('/') + 1);
  if (::access(folder.c_str(), F_OK) != 0)
    return fmt::format("make its folder: mkdir -p {}", shell_word(folder));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return fmt::format("user {} must be able to write to {}", ::geteuid(), folder);
  if (rte_eth_dev_count_total() >= RTE_MAX_ETHPORTS)
    return fmt::format("DPDK has no more than {} ports in one process", RTE_MAX_ETHPORTS);
  if (std::string limits = advice_on_limits(); !limits.empty()) return limits;
  return fmt::format("check that the DPDK memory of {} MiB for this NIC was there",
                     memif_memory_mib(config));
}

}  // namespace

std::uint32_t memif_memory_mib(const MemifConfig& config) {
  constexpr std::uint32_t kQueuesMib = 3;
  const std::uint64_t pools = pool_bytes(rx_frames(config), buffer_bytes(config.mtu_bytes)) +
                              pool_bytes(kTxHeaderFrames, tx_header_room_bytes(config.mtu_bytes));
  return static_cast<std::uint32_t>((pools + (1U << 20) - 1) >> 20) + kQueuesMib;
}

Result<std::unique_ptr<Link>> open_memif(const MemifConfig& config) {
  ZTCP_CHECK(check(config));
  const bool server = config.role == MemifRole::kServer;
  SocketFolder folder;  // Until the socket listens.
  if (server) folder = ZTCP_TRY(make_way_for_server(config.socket_path));

  static std::atomic<unsigned> serial{0};
  PortConfig port_config;
  port_config.device = fmt::format("net_memif{}", serial.fetch_add(1));
  port_config.arguments =
      fmt::format("role={},id={},socket={},socket-abstract=no,mac={},bsize={},rsize={}",
                  server ? "server" : "client", config.id, config.socket_path,
                  to_string(config.mac), buffer_bytes(config.mtu_bytes), ring_size_log2(config));
  port_config.mtu_bytes = config.mtu_bytes;
  port_config.rx_frames = rx_frames(config);
  port_config.rx_room_bytes = rx_room_bytes(config.mtu_bytes);
  port_config.tx_header_frames = kTxHeaderFrames;
  port_config.tx_header_room_bytes = tx_header_room_bytes(config.mtu_bytes);
  port_config.driver_copies = true;

  auto port = Port::open(port_config);
  if (!port) {
    const Error& error = port.error();
    log::warn("memif {}: {} failed: {} ({}); {}", config.socket_path, error.where,
              describe(error.code), std::strerror(error.sys_errno), mending_advice(config));
    return tl::unexpected<Error>(error);
  }
  PortLinkOptions options;
  options.description =
      fmt::format("memif {} {}", config.socket_path, server ? "server" : "client");
  options.reconnects = !server;
  return std::make_unique<PortLink>(
      std::make_shared<OpenPort>(std::move(*port), std::move(options)));
}

}  // namespace ztcp::link
