// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/gpu_direct.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace ztcp::verbs {
namespace {

// No such buffer is, so that a driver that knows them says EBADF, and one that does not says so.
bool knows_dmabuf(const OpenDevice& device) {
  if (device.api->reg_dmabuf_mr == nullptr) return false;
  errno = 0;
  RegionHandle region(device.api->reg_dmabuf_mr(device.domain.get(), 0, 0, 0, -1, 0), {device.api});
  return region == nullptr && errno != EOPNOTSUPP && errno != EPROTONOSUPPORT;
}

// Old and new modules, and where each shows itself.
std::string peer_memory_module(const std::string& sys_root) {
  struct Sign {
    const char* path;
    const char* module;
  };
  constexpr std::array kSigns{Sign{"/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"},
                              Sign{"/kernel/mm/memory_peers/nv_mem_nc/version", "nv_peer_mem"},
                              Sign{"/module/nvidia_peermem/version", "nvidia_peermem"}};
  std::error_code error;
  for (const Sign& sign : kSigns)
    if (std::filesystem::exists(sys_root + sign.path, error)) return sign.module;
  return {};
}

}  // namespace

void probe_gpu_direct(Device& device, const std::string& sys_root) {
  const std::string module = peer_memory_module(sys_root);
  device.has_peer_memory = !module.empty();
  device.has_dmabuf = knows_dmabuf(*device.opened);
  if (device.has_dmabuf && device.has_peer_memory)
    device.gpu_direct = "on (DMA-BUF, " + module + ")";
  else if (device.has_dmabuf)
    device.gpu_direct = "on (DMA-BUF)";
  else if (device.has_peer_memory)
    device.gpu_direct = "on (" + module + ")";
  else
    device.gpu_direct =
        "off: its driver registers no DMA-BUF, and nvidia_peermem is not loaded (modprobe "
        "nvidia_peermem)";
}

}  // namespace ztcp::verbs
