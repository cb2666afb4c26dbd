// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/memory.h"

namespace ztcp::plugin {

Told<MemoryKey*> register_memory(Comm& comm, const Region& region) {
  const Result<MemoryKey*> key = comm.register_memory(region);
  if (key) return *key;
  const bool on_gpu = region.kind == MemoryKind::kCuda;
  return report(
      key.error().code, "registering {} bytes of {} memory at {}{} failed: {}{}", region.size_bytes,
      on_gpu ? "GPU" : "host", region.address, region.dmabuf_fd >= 0 ? " by DMA-BUF" : "",
      explain(key.error()),
      !on_gpu ? ""
      : key.error().code == Errc::kInvalidArgument
          ? "; ptrSupport lists the memory this device moves: GPUDirect RDMA needs an RDMA NIC"
          : "; dmesg may say more; NCCL_NET_GDR_LEVEL=LOC on all hosts has NCCL go through "
            "host memory");
}

Told<void> deregister_memory(Comm& comm, MemoryKey* key) {
  if (key == nullptr) return {};
  if (const Status status = comm.deregister_memory(key); !status)
    return report(status.error().code, "deregistering memory failed: {}", explain(status.error()));
  return {};
}

}  // namespace ztcp::plugin
