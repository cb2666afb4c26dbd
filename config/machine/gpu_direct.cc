// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/gpu_direct.h"

#include <utility>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "core/kernel_release.h"

namespace ztcp::config {
namespace {

// DMA-BUF registration came with Linux 5.12, and only the open one of NVIDIA's two kernel modules
// exports DMA-BUFs.
std::string why_no_dmabuf(Machine& machine) {
  const std::string release = read_line(machine, "/proc/sys/kernel/osrelease").value_or("");
  if (kernel_version(release) < KernelVersion{5, 12})
    return fmt::format("DMA-BUFs need Linux 5.12 and this is {}",
                       release.empty() ? "unknown" : release);
  if (text_of(machine, "/proc/driver/nvidia/version").find("Open Kernel Module") ==
      std::string::npos)
    return "DMA-BUFs need NVIDIA's open kernel module";
  return {};
}

// depmod lists the symbols' providers: an RDMA core without this call cannot load such a module.
bool is_module_at_hand(Machine& machine) {
  const std::string folder =
      "/lib/modules/" + read_line(machine, "/proc/sys/kernel/osrelease").value_or("");
  return text_of(machine, folder + "/modules.dep").find("/nvidia-peermem.ko") !=
             std::string::npos &&
         text_of(machine, folder + "/modules.symbols").find("ib_register_peer_memory_client") !=
             std::string::npos;
}

}  // namespace

GpuDirect read_gpu_direct(Machine& machine) {
  GpuDirect found;
  found.has_gpu_driver = exists(machine, "/proc/driver/nvidia/version");
  if (!found.has_gpu_driver) return found;
  for (const PeerMemorySign& sign : kPeerMemorySigns)
    if (found.module.empty() && exists(machine, std::string("/sys") + sign.path))
      found.module = sign.module;
  found.why_no_dmabuf = why_no_dmabuf(machine);
  found.has_dmabuf = found.why_no_dmabuf.empty();
  found.is_module_at_hand = is_module_at_hand(machine);
  return found;
}

std::string to_string(const GpuDirect& found) {
  if (!found.has_gpu_driver) return "off: NVIDIA's driver is not loaded";
  if (found.has_dmabuf && !found.module.empty())
    return fmt::format("by DMA-BUF where the NIC's driver takes it, and by {}", found.module);
  if (found.has_dmabuf) return "by DMA-BUF where the NIC's driver takes it";
  if (!found.module.empty()) return "by " + found.module;
  return fmt::format("off: {}, and {} is not loaded", found.why_no_dmabuf, kPeerMemoryModule);
}

}  // namespace ztcp::config
