// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The memory that NCCL has registered with a device, by pages. NCCL registers the same buffers with
// every connection, and each registration would pin its pages anew. Registrations are counted, and
// end with the last user: a key never belongs to memory that was mapped at the address before.
// Memory of a merged device is registered on all of its rails. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/device.h"
#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

// The device's registration of one range.
struct RegisteredPages {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  MemoryKind kind = MemoryKind::kHost;
  bool is_dmabuf = false;
  std::size_t users = 0;
  RegionHandle region;
};

// NCCL's handle: one for each of its calls.
struct RegisteredMemory final : MemoryKey {
  std::array<RegisteredPages*, kMaxRails> pages{};
  RailKeys lkeys{};
  RailKeys rkeys{};
  bool is_host = true;
};

// The registrations of one device.
class PageRegistrations {
 public:
  // With relaxed ordering, PCIe may reorder payload, as is NCCL's default.
  explicit PageRegistrations(const Device& device)
      : device_(device.opened),
        has_dmabuf_(device.has_dmabuf),
        has_peer_memory_(device.has_peer_memory),
        is_relaxed_(device.is_relaxed) {}

  bool is_dead() const { return device_->is_dead.load(); }
  void mark_dead() { device_->is_dead.store(true); }
  // Counts one more user.
  Result<RegisteredPages*> take(const Region& region);
  void give_back(RegisteredPages* pages);

 private:
  RegionHandle make(const Region& region, std::uint64_t begin, std::uint64_t end) const;

  const std::shared_ptr<OpenDevice> device_;
  const bool has_dmabuf_;
  const bool has_peer_memory_;
  const bool is_relaxed_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RegisteredPages>> pages_;
};

// The registrations of all rails of a RailSet. Null: a rail that needs no registration, or can't be
// used. A rail with a failed device has no key, as long as another rail has one.
class Registrations {
 public:
  explicit Registrations(std::vector<PageRegistrations*> rails) : rails_(std::move(rails)) {}

  Result<MemoryKey*> add(const Region& region);
  Status remove(MemoryKey* key);

 private:
  void give_back(const RegisteredMemory& memory) const;

  const std::vector<PageRegistrations*> rails_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RegisteredMemory>> keys_;
};

// The keys of a message's memory. Null for a message without registered memory, which moves no
// bytes.
inline const RegisteredMemory* registered(const MemoryKey* key) {
  return static_cast<const RegisteredMemory*>(key);
}

}  // namespace ztcp::verbs
