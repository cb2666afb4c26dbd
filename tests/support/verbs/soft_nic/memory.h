// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The memory that this process has registered with its NICs. Under the NIC's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tests/support/verbs/soft_nic/counters.h"
#include "tests/support/verbs/soft_nic/gpu.h"
#include "tests/support/verbs/soft_nic/settings.h"
#include "transport/verbs/api.h"

namespace ztcp::soft_nic {

struct Memory : ibv_mr {
  unsigned access = 0;
  Gpu* gpu = nullptr;  // Null: host memory.
  int dmabuf_fd = -1;  // Our own: the kernel holds a buffer that is registered.
};

class MemoryTable {
 public:
  MemoryTable(const Faults& faults, Counters& counters) : faults_(faults), counters_(counters) {}

  // nullptr: refused, as errno says.
  Memory* add(ibv_pd* domain, std::uint64_t address, std::size_t size, unsigned access);
  Memory* add_dmabuf(ibv_pd* domain, std::uint64_t offset, std::size_t size, std::uint64_t address,
                     int fd, unsigned access);
  void remove(Memory* memory);
  bool has_any_of(const ibv_pd* domain) const;

  // nullptr: the key is none of the domain's, or not of all that range.
  Memory* find(std::uint32_t key, const ibv_pd* domain, std::uint64_t address,
               std::size_t size) const;
  bool read(const Memory& memory, std::span<std::byte> to, std::uint64_t address);
  bool write(Memory& memory, std::uint64_t address, std::span<const std::byte> from);
  // Brings out what a device holds: what a read of its does to all its writes before.
  bool push(const ibv_device* of);

 private:
  struct Held {
    const ibv_device* of;
    Gpu* gpu;
    std::uint64_t address;
    std::vector<std::byte> bytes;
  };

  bool is_refused();
  Memory* keep(ibv_pd* domain, std::uint64_t address, std::size_t size, unsigned access);

  const Faults& faults_;
  Counters& counters_;
  std::uint64_t asked_ = 0;
  std::uint32_t next_key_ = 0x1000;  // Never the same again, so that a stale one is seen.
  std::map<std::uint32_t, Memory*> by_key_;
  std::vector<Held> held_;
};

}  // namespace ztcp::soft_nic
