// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/registrations.h"

#include <algorithm>
#include <utility>

namespace ztcp::comms {

Result<MemoryKey*> Registrations::add(Backend& backend, const Region& region) {
  if (region.kind != MemoryKind::kHost || region.dmabuf_fd >= 0)
    return fail(Errc::kInvalidArgument, "TCP, which moves host memory only");
  auto made = std::make_unique<Registration>();
  made->address = region.address;
  made->size_bytes = region.size_bytes;
  made->link_key = backend.map_memory(region.address, region.size_bytes);
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(made));
  return all_.back().get();
}

std::unique_ptr<Registration> Registrations::remove(const MemoryKey* key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(all_, [&](const auto& one) { return one.get() == key; });
  if (found == all_.end()) return nullptr;
  auto removed = std::move(*found);
  all_.erase(found);
  return removed;
}

std::vector<std::unique_ptr<Registration>> Registrations::remove_all() {
  const std::lock_guard lock(mutex_);
  return std::exchange(all_, {});
}

}  // namespace ztcp::comms
