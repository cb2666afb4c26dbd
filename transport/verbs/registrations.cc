// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/registrations.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace ztcp::verbs {
namespace {

// The receiver's own device reads GPU memory for flushes, over a queue pair of its own.
unsigned access_to(MemoryKind kind) {
  const unsigned writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  return kind == MemoryKind::kHost ? writes : writes | IBV_ACCESS_REMOTE_READ;
}

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

RegionHandle PageRegistrations::make(const Region& region, std::uint64_t begin,
                                     std::uint64_t end) const {
  const Api& api = *device_->api;
  ibv_pd* const domain = device_->domain.get();
  const unsigned relaxed = is_relaxed_ && api.reg_mr_iova2 != nullptr
                               ? static_cast<unsigned>(IBV_ACCESS_RELAXED_ORDERING)
                               : 0U;
  auto* const address = static_cast<std::byte*>(region.address);
  auto* const first = address - (reinterpret_cast<std::uint64_t>(address) - begin);
  const unsigned access = access_to(region.kind);
  ibv_mr* made = nullptr;
  // The kernel holds the buffer itself from here on: NCCL may close its descriptor.
  if (region.dmabuf_fd >= 0)
    made = api.reg_dmabuf_mr(domain, region.offset, region.size_bytes, begin, region.dmabuf_fd,
                             static_cast<int>(access | relaxed));
  else if (api.reg_mr_iova2 != nullptr)
    made = api.reg_mr_iova2(domain, first, end - begin, begin, access | relaxed);
  else
    made = api.reg_mr(domain, first, end - begin, static_cast<int>(access));
  return {made, {&api}};
}

Result<RegisteredPages*> PageRegistrations::take(const Region& region) {
  const bool is_dmabuf = region.dmabuf_fd >= 0;
  if (region.kind == MemoryKind::kCuda && !(is_dmabuf ? has_dmabuf_ : has_peer_memory_))
    return fail(Errc::kInvalidArgument, is_dmabuf ? "a DMA-BUF" : "GPU memory by its address");
  // A DMA-BUF is registered exactly as given: its pages are the exporter's.
  const std::uint64_t page = is_dmabuf ? 1 : page_bytes();
  const auto address = reinterpret_cast<std::uint64_t>(region.address);
  const std::uint64_t begin = address / page * page;
  const std::uint64_t end = (address + region.size_bytes + page - 1) / page * page;

  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(pages_.begin(), pages_.end(), [&](const auto& one) {
    return one->kind == region.kind && one->is_dmabuf == is_dmabuf && one->begin <= begin &&
           end <= one->end;
  });
  RegisteredPages* pages = found == pages_.end() ? nullptr : found->get();
  if (pages == nullptr) {
    auto fresh = std::make_unique<RegisteredPages>(
        RegisteredPages{begin, end, region.kind, is_dmabuf, 0, make(region, begin, end)});
    if (!fresh->region) {
      const int error = errno;
      return fail(error == ENOMEM ? Errc::kOutOfMemory : Errc::kSystem,
                  is_dmabuf         ? "ibv_reg_dmabuf_mr"
                  : error == ENOMEM ? "ibv_reg_mr: raise ulimit -l"
                                    : "ibv_reg_mr",
                  error);
    }
    pages = fresh.get();
    pages_.push_back(std::move(fresh));
  }
  ++pages->users;
  return pages;
}

void PageRegistrations::give_back(RegisteredPages* pages) {
  RegionHandle last;  // Given back when the lock is released, in reverse order of their making.
  const std::lock_guard lock(mutex_);
  if (--pages->users > 0) return;
  const auto at = std::find_if(pages_.begin(), pages_.end(),
                               [&](const auto& one) { return one.get() == pages; });
  last = std::move((*at)->region);
  pages_.erase(at);
}

Result<MemoryKey*> Registrations::add(const Region& region) {
  if (region.size_bytes == 0) return fail(Errc::kInvalidArgument, "no bytes to register");
  auto key = std::make_unique<RegisteredMemory>();
  key->is_host = region.kind == MemoryKind::kHost;
  if (!key->is_host &&
      std::all_of(rails_.begin(), rails_.end(), [](const auto* rail) { return rail == nullptr; }))
    return fail(Errc::kInvalidArgument, "GPU memory, with TCP alone");
  Error dead{Errc::kNoDevice, EIO, "ibv_reg_mr: the device has failed"};
  bool has_any = false;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i] == nullptr || (rails_.size() > 1 && rails_[i]->is_dead())) continue;
    const Result<RegisteredPages*> pages = rails_[i]->take(region);
    if (!pages && rails_.size() > 1 && is_of_dead_device(pages.error().sys_errno)) {
      rails_[i]->mark_dead();
      dead = pages.error();
      continue;
    }
    if (!pages) {
      give_back(*key);
      return tl::unexpected(pages.error());
    }
    has_any = true;
    key->pages[i] = *pages;
    key->lkeys[i] = (*pages)->region->lkey;
    key->rkeys[i] = (*pages)->region->rkey;
  }
  // Rails of TCP are not counted: they carry host memory without a key.
  const bool goes_without =
      key->is_host &&
      std::any_of(rails_.begin(), rails_.end(), [](const auto* rail) { return rail == nullptr; });
  if (!has_any && !goes_without) return tl::unexpected(dead);
  RegisteredMemory* const raw = key.get();
  const std::lock_guard lock(mutex_);
  keys_.push_back(std::move(key));
  return raw;
}

void Registrations::give_back(const RegisteredMemory& memory) const {
  for (std::size_t i = 0; i < rails_.size(); ++i)
    if (memory.pages[i] != nullptr) rails_[i]->give_back(memory.pages[i]);
}

Status Registrations::remove(MemoryKey* key) {
  std::unique_ptr<RegisteredMemory> removed;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(keys_.begin(), keys_.end(), [&](const auto& one) { return one.get() == key; });
    if (found == keys_.end()) return fail(Errc::kInvalidArgument, "memory key");
    removed = std::move(*found);
    keys_.erase(found);
  }
  give_back(*removed);
  return {};
}

}  // namespace ztcp::verbs
