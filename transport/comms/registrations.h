// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The memory that NCCL has registered with one comm, and the backend's keys for it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/comms/backend.h"
#include "transport/transport.h"

namespace ztcp::comms {

struct Registration final : MemoryKey {
  void* address = nullptr;
  std::size_t size_bytes = 0;
  std::uint32_t link_key = kUnmapped;
};

// The link's key for registered memory. NCCL may pass NULL as a handle: unregistered memory.
inline std::uint32_t link_key(const MemoryKey* key) {
  return key == nullptr ? kUnmapped : static_cast<const Registration*>(key)->link_key;
}

class Registrations {
 public:
  Result<MemoryKey*> add(Backend& backend, const Region& region);
  // The memory stays mapped. Null: no such key, or it was removed before.
  std::unique_ptr<Registration> remove(const MemoryKey* key);
  // For a comm that closes.
  std::vector<std::unique_ptr<Registration>> remove_all();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Registration>> all_;
};

}  // namespace ztcp::comms
