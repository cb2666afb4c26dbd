// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/soft_nic/memory.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/ordered_copy.h"

namespace ztcp::soft_nic {
namespace {

constexpr std::uint64_t kInPage = 4095;

// As in the kernel: remote write requires local write.
bool is_access(unsigned access) {
  return (access & IBV_ACCESS_REMOTE_WRITE) == 0 || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

Memory* refuse_memory(int sys_errno) {
  errno = sys_errno;
  return nullptr;
}

// Checks the first and the last page.
bool is_mapped(std::uint64_t address, std::size_t size) {
  const auto is_there = [](std::uint64_t at) {
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(at & ~kInPage), 1, &resident) == 0;
  };
  return is_there(address) && is_there(address + size - 1);
}

}  // namespace

bool MemoryTable::is_refused() { return ++asked_ == faults_.refuse.at; }

Memory* MemoryTable::keep(ibv_pd* domain, std::uint64_t address, std::size_t size,
                          unsigned access) {
  auto* const memory = new Memory{};
  memory->context = domain->context;
  memory->pd = domain;
  memory->addr = reinterpret_cast<void*>(address);
  memory->length = size;
  memory->access = access;
  memory->lkey = memory->rkey = next_key_++;
  by_key_[memory->lkey] = memory;
  return memory;
}

Memory* MemoryTable::add(ibv_pd* domain, std::uint64_t address, std::size_t size, unsigned access) {
  if (is_refused()) return refuse_memory(static_cast<int>(faults_.refuse.value));
  if (!is_access(access)) return refuse_memory(EINVAL);
  if (Gpu* const gpu = Gpu::of(address, size)) {
    if (!faults_.has_peer_memory) return refuse_memory(EFAULT);
    counters_.add(Count::kPeerMemoryRegistrations);
    Memory* const memory = keep(domain, address, size, access);
    memory->gpu = gpu;
    return memory;
  }
  if (size == 0 || !is_mapped(address, size)) return refuse_memory(EFAULT);
  counters_.add(Count::kRegistrations);
  return keep(domain, address, size, access);
}

Memory* MemoryTable::add_dmabuf(ibv_pd* domain, std::uint64_t offset, std::size_t size,
                                std::uint64_t address, int fd, unsigned access) {
  if (!faults_.knows_dmabuf) return refuse_memory(EOPNOTSUPP);
  // Programs ask the driver this way whether it supports DMA-BUFs.
  if (fd < 0) return refuse_memory(EBADF);
  if (is_refused()) return refuse_memory(static_cast<int>(faults_.refuse.value));
  if (!is_access(access)) return refuse_memory(EINVAL);
  // As in the kernel: the range is inside the buffer, and both have the same offset in their pages.
  const off_t whole = lseek(fd, 0, SEEK_END);
  if (whole >= 0 && offset + size > static_cast<std::uint64_t>(whole)) return refuse_memory(EINVAL);
  if ((offset & kInPage) != (address & kInPage)) return refuse_memory(EINVAL);
  Gpu* const gpu = Gpu::of(address, size);
  if (gpu == nullptr) return refuse_memory(EINVAL);
  // The program may close its descriptor at once.
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  counters_.add(Count::kDmabufRegistrations);
  Memory* const memory = keep(domain, address, size, access);
  memory->gpu = gpu;
  memory->dmabuf_fd = own;
  return memory;
}

void MemoryTable::remove(Memory* memory) {
  if (memory->gpu != nullptr) push(memory->context->device);
  by_key_.erase(memory->lkey);
  if (memory->dmabuf_fd >= 0) close(memory->dmabuf_fd);
  delete memory;
}

bool MemoryTable::has_any_of(const ibv_pd* domain) const {
  return std::any_of(by_key_.begin(), by_key_.end(),
                     [&](const auto& one) { return one.second->pd == domain; });
}

Memory* MemoryTable::find(std::uint32_t key, const ibv_pd* domain, std::uint64_t address,
                          std::size_t size) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second->pd != domain) return nullptr;
  Memory& memory = *found->second;
  const auto begin = reinterpret_cast<std::uint64_t>(memory.addr);
  return address >= begin && address + size <= begin + memory.length ? &memory : nullptr;
}

bool MemoryTable::read(const Memory& memory, std::span<std::byte> to, std::uint64_t address) {
  if (memory.gpu != nullptr) {
    counters_.add(Count::kGpuReadBytes, to.size());
    return memory.gpu->read(to, address);
  }
  ordered_copy(to.data(), reinterpret_cast<const std::byte*>(address), to.size());
  return true;
}

bool MemoryTable::write(Memory& memory, std::uint64_t address, std::span<const std::byte> from) {
  if (from.empty()) return true;
  if (memory.gpu != nullptr) {
    counters_.add(Count::kGpuWrittenBytes, from.size());
    if (!faults_.holds_gpu_writes) return memory.gpu->write(address, from);
    held_.push_back({memory.context->device, memory.gpu, address, {from.begin(), from.end()}});
    return true;
  }
  // Ascending, because pollers read slots, and the flags in NCCL's lines, while they arrive.
  ordered_copy(reinterpret_cast<std::byte*>(address), from.data(), from.size());
  return true;
}

bool MemoryTable::push(const ibv_device* of) {
  bool is_fine = true;
  std::erase_if(held_, [&](const Held& one) {
    if (one.of != of) return false;
    is_fine &= one.gpu->write(one.address, one.bytes);
    counters_.add(Count::kHeldWrites);
    return true;
  });
  return is_fine;
}

}  // namespace ztcp::soft_nic
