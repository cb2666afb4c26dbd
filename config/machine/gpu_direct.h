// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether RDMA NICs of this machine can read and write GPU memory directly, as far as files show:
// only opening a device gives certainty (transport/verbs/gpu_direct.h).
#pragma once

#include <array>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::config {

// Modules that give GPU addresses to RDMA drivers, and the path that each creates. The new module
// comes first: with some kernels it creates the old one's path, too.
struct PeerMemorySign {
  const char* path;  // Below /sys.
  const char* module;
};
inline constexpr std::array kPeerMemorySigns{
    PeerMemorySign{"/module/nvidia_peermem/version", "nvidia_peermem"},
    PeerMemorySign{"/kernel/mm/memory_peers/nv_mem_nc/version", "nvidia_peermem"},
    PeerMemorySign{"/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"}};
inline constexpr const char* kPeerMemoryModule = "nvidia_peermem";

struct GpuDirect {
  bool has_gpu_driver = false;     // NVIDIA's driver is loaded.
  std::string module;              // The loaded peer memory module; empty: none.
  bool has_dmabuf = false;         // Kernel and GPU driver support them; the NIC's may not.
  bool is_module_at_hand = false;  // nvidia_peermem is installed, and the kernel can load it.
  std::string why_no_dmabuf;       // "Linux 5.4 is older than 5.12"

  bool is_on() const { return has_dmabuf || !module.empty(); }
};
GpuDirect read_gpu_direct(Machine& machine);
// "by DMA-BUF (Linux 6.1, NVIDIA's open kernel module)", "off: ..."
std::string to_string(const GpuDirect& found);

}  // namespace ztcp::config
