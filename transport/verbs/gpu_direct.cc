// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/gpu_direct.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "config/machine/gpu_direct.h"
#include "config/machine/live_machine.h"

namespace ztcp::verbs {
namespace {

// Why DMA-BUFs can't be registered; empty: they can. No such buffer is, so that a driver that knows
// them says EBADF, and one that does not says so.
std::string fault_of_dmabuf(const OpenDevice& device) {
  if (device.api->reg_dmabuf_mr == nullptr)
    return "its libibverbs is older than release 34 and knows no DMA-BUF";
  errno = 0;
  RegionHandle region(device.api->reg_dmabuf_mr(device.domain.get(), 0, 0, 0, -1, 0), {device.api});
  const bool is_known = region == nullptr && errno != EOPNOTSUPP && errno != EPROTONOSUPPORT;
  return is_known ? "" : "its driver registers no DMA-BUF";
}

std::string peer_memory_module(const std::string& sys_root) {
  std::error_code error;
  for (const config::PeerMemorySign& sign : config::kPeerMemorySigns)
    if (std::filesystem::exists(sys_root + sign.path, error)) return sign.module;
  return {};
}

// What the GPU's side lacks, as far as it can be seen; NCCL asks CUDA, and hands none over then.
std::string without_export(const std::string& sys_root) {
  config::LiveMachine machine(std::filesystem::path(sys_root).parent_path().string());
  const config::GpuDirect found = config::read_gpu_direct(machine);
  return found.has_gpu_driver && !found.has_dmabuf ? "; but " + found.why_no_dmabuf : "";
}

}  // namespace

void probe_gpu_direct(Device& device, const std::string& sys_root) {
  if (device.is_iwarp) {
    device.gpu_direct = "off: an iWARP device is not joined to itself to flush what it wrote";
    return;
  }
  const std::string module = peer_memory_module(sys_root);
  device.has_peer_memory = !module.empty();
  const std::string fault = fault_of_dmabuf(*device.opened);
  device.has_dmabuf = fault.empty();
  if (device.has_dmabuf && device.has_peer_memory)
    device.gpu_direct = "on (DMA-BUF, " + module + ")";
  else if (device.has_dmabuf)
    device.gpu_direct = "on (DMA-BUF" + without_export(sys_root) + ")";
  else if (device.has_peer_memory)
    device.gpu_direct = "on (" + module + ")";
  else
    device.gpu_direct =
        "off: " + fault + ", and nvidia_peermem is not loaded (modprobe nvidia_peermem)";
}

}  // namespace ztcp::verbs
