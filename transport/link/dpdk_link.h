// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Link over one DPDK port: memif for processes of one machine, a PCI NIC otherwise. Owned and
// used by one poller thread; map_memory() and unmap_memory() may come from any thread.
//
// memif's driver copies while it transmits, so payload is attached in place for any memory_key, and
// is free again when transmit() returns: one copy into the shared ring, and the receiver's driver
// makes the second one out of it. It has no checksum offload; the stack fills and verifies
// checksums itself, because corruption by a switch must be detected.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "hugepage/budget.h"
#include "transport/link/link.h"

namespace ztcp::link {

enum class MemifRole : std::uint8_t { kServer, kClient };

struct MemifConfig {
  std::string socket_path;  // Made by the server; at most 107 bytes.
  MemifRole role = MemifRole::kClient;
  std::uint32_t id = 0;  // The same at both ends of a memif; unique on its socket.
  MacAddress mac;
  std::uint16_t mtu_bytes = 1500;   // The same at both ends; at most kMaxMemifMtuBytes.
  std::uint8_t ring_size_log2 = 0;  // 0: chosen so that a ring holds about 4 MiB.
  std::uint32_t rx_frames = 0;      // 0: about 48 MiB, between 1024 and 8192 frames.
};

// A memif frame must fit into one buffer of the receiver's pool. With DPDK's headroom the buffer's
// size is limited to 16 bits.
inline constexpr std::uint16_t kMaxMemifMtuBytes = 65280;

// EAL memory that one memif link needs: start_eal() needs the sum, plus kEalBaseMib.
std::uint32_t memif_memory_mib(const MemifConfig& config);
inline constexpr std::uint32_t kEalBaseMib = hugepage::kDpdkBaseMib;

// EAL must run with plain memory. A client may be opened before its server: it is down and looks
// for one ten times a second, also after it has lost one. kBusy: another process serves the socket,
// or this one already has that id.
Result<std::unique_ptr<Link>> open_memif(const MemifConfig& config);

struct PciConfig {
  std::string address;  // "0000:3b:00.0", bound to vfio-pci.
  std::uint16_t mtu_bytes = 1500;
  std::uint16_t vlan_id = 0;  // VLAN of received frames; 0: untagged.
  bool is_ipv6 = false;       // The family of received packets.
  int numa_node = -1;
  std::uint16_t queues = 1;
  bool fewer_queues_will_do = false;  // If the device has fewer queues, or does not spread packets.
  std::uint32_t rx_frames = 8192;     // Per queue.
  // Host class A. False: payload is copied once into hugepages.
  bool device_reads_user_memory = false;
  bool counts_drops = false;  // LinkCounters::nic is kept, which takes a thread.
};

// A link for each queue, joined as in shards.h. More queues than the device has: kBadConfig, which
// is logged.
Result<std::vector<std::unique_ptr<Link>>> open_pci(const PciConfig& config);

}  // namespace ztcp::link
