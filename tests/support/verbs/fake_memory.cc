// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <cerrno>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "tests/support/verbs/fake_calls.h"

namespace ztcp::test {
namespace {

// Memory that only a device reaches.
bool is_gpu(void* address) {
  std::byte byte{};
  const iovec to{&byte, 1};
  const iovec from{address, 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT;
}

}  // namespace

ibv_pd* FakeCalls::alloc_pd(ibv_context* context) {
  FakeFabric& fabric = fabric_of(context);
  const Lock lock(fabric.mutex_);
  ++fabric.live_["pd"];
  return new ibv_pd{context, 0};
}

int FakeCalls::dealloc_pd(ibv_pd* pd) {
  FakeFabric& fabric = fabric_of(pd->context);
  const Lock lock(fabric.mutex_);
  for (const auto& [key, memory] : fabric.memory_)
    if (memory->pd == pd) return fabric.note("a domain goes before its memory"), EBUSY;
  for (const auto& [number, qp] : fabric.queue_pairs_)
    if (qp->pd == pd) return fabric.note("a domain goes before its queue pairs"), EBUSY;
  --fabric.live_["pd"];
  delete pd;
  return 0;
}

ibv_mr* FakeCalls::add_memory(ibv_pd* pd, void* address, std::size_t size, unsigned access,
                              std::shared_ptr<MemoryRegion> region) {
  FakeFabric& fabric = fabric_of(pd->context);
  const Lock lock(fabric.mutex_);
  if (const int error = fabric.refusal_of("ibv_reg_mr")) return errno = error, nullptr;
  const FakeDevice& device = *static_cast<FakeContext*>(pd->context)->fake;
  if (device.is_dead) return errno = EIO, nullptr;
  if (size > device.spec.max_mr_bytes) return errno = EINVAL, nullptr;
  auto* const memory = new FakeMemory{};
  memory->context = pd->context;
  memory->pd = pd;
  memory->addr = address;
  memory->length = size;
  memory->access = access;
  memory->iova = reinterpret_cast<std::uint64_t>(address);
  memory->region = std::move(region);
  // Keys are never used again, so that a stale one is detected.
  memory->lkey = memory->rkey = fabric.next_key_++;
  fabric.memory_[memory->lkey] = memory;
  ++fabric.live_["mr"];
  return memory;
}

ibv_mr* FakeCalls::reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) {
  return reg_mr_iova2(pd, address, size, reinterpret_cast<std::uint64_t>(address),
                      static_cast<unsigned>(access));
}

ibv_mr* FakeCalls::reg_mr_iova2(ibv_pd* pd, void* address, std::size_t size, std::uint64_t,
                                unsigned access) {
  std::shared_ptr<MemoryRegion> region;
  if (is_gpu(address)) {
    if (!static_cast<FakeContext*>(pd->context)->fake->spec.has_peer_memory)
      return errno = EFAULT, nullptr;
    auto made =
        MemoryRegion::make({.address = address, .size_bytes = size, .kind = MemoryKind::kCuda});
    if (!made) return errno = EINVAL, nullptr;
    region = std::move(*made);
  }
  return add_memory(pd, address, size, access, std::move(region));
}

ibv_mr* FakeCalls::reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size,
                                 std::uint64_t iova, int fd, int access) {
  if (!static_cast<FakeContext*>(pd->context)->fake->spec.knows_dmabuf)
    return errno = EOPNOTSUPP, nullptr;
  if (fd < 0) return errno = EBADF, nullptr;
  // As in the kernel: buffer and address have the same offset in their pages.
  constexpr std::uint64_t kInPage = 4095;
  if ((offset & kInPage) != (iova & kInPage)) return errno = EINVAL, nullptr;
  auto* const address = reinterpret_cast<void*>(iova);
  auto made = MemoryRegion::make({.address = address,
                                  .size_bytes = size,
                                  .kind = MemoryKind::kCuda,
                                  .dmabuf_fd = fd,
                                  .offset = offset});
  if (!made) return errno = EINVAL, nullptr;
  return add_memory(pd, address, size, static_cast<unsigned>(access), std::move(*made));
}

int FakeCalls::dereg_mr(ibv_mr* mr) {
  FakeFabric& fabric = fabric_of(mr->context);
  const Lock lock(fabric.mutex_);
  fabric.memory_.erase(mr->lkey);
  --fabric.live_["mr"];
  delete static_cast<FakeMemory*>(mr);
  return 0;
}

}  // namespace ztcp::test
