// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Link over one DPDK port: memif for processes of one machine, a PCI NIC otherwise. Owned and
// used by one poller thread; map_memory() and unmap_memory() may come from any thread.
//
// memif's driver copies while it transmits, so payload is attached where it lies whatever its
// memory_key says, and is free again when transmit() returns: one copy into the shared ring, and
// the receiver's driver makes the second one out of it. It has no checksum offload; the stack
// fills and verifies checksums itself, because a switch that corrupts frames must be found out.
#pragma once

#include <memory>
#include <string>

#include "hugepage/budget.h"
#include "transport/core/result.h"
#include "transport/link/link.h"

namespace ztcp::link {

enum class MemifRole : std::uint8_t { kServer, kClient };

struct MemifConfig {
  std::string socket_path;  // The server makes it; at most 107 bytes.
  MemifRole role = MemifRole::kClient;
  std::uint32_t id = 0;  // Both ends of one memif on a socket have the same.
  MacAddress mac;
  std::uint16_t mtu_bytes = 1500;   // The same on both ends; at most kMaxMemifMtuBytes.
  std::uint8_t ring_size_log2 = 0;  // 0: so that a ring holds about 4 MiB.
  std::uint32_t rx_frames = 0;      // 0: about 48 MiB of them, 1024 at least, 4096 at most.
};

// A memif frame stays within one buffer of the receiver's pool, whose size is 16 bits with
// DPDK's headroom.
inline constexpr std::uint16_t kMaxMemifMtuBytes = 65280;

// What one memif link takes from EAL's memory: give start_eal() the sum, plus kEalBaseMib.
std::uint32_t memif_memory_mib(const MemifConfig& config);
inline constexpr std::uint32_t kEalBaseMib = hugepage::kDpdkBaseMib;

// EAL runs with plain memory. A client needs no server yet: it is down and looks for one ten
// times a second, also after it has lost one. kBusy: another process serves the socket, or this
// one already has that id.
Result<std::unique_ptr<Link>> open_memif(const MemifConfig& config);

struct PciConfig {
  std::string address;  // "0000:3b:00.0", bound to vfio-pci.
  std::uint16_t mtu_bytes = 1500;
  std::uint16_t vlan_id = 0;  // Of the frames that come; 0: untagged.
  int numa_node = -1;
  std::uint16_t queues = 1;
  bool fewer_queues_will_do = false;  // Where the device does not have them, or spreads nothing.
  std::uint32_t rx_frames = 8192;     // Of each queue.
  // Host class A. False: payload is copied once into hugepages.
  bool device_reads_user_memory = false;
};

// A link for each queue, as shards.h joins them. More than there are: kBadConfig, which is said.
Result<std::vector<std::unique_ptr<Link>>> open_pci(const PciConfig& config);

}  // namespace ztcp::link
