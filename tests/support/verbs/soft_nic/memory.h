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
  int dmabuf_fd = -1;  // A duplicate: the kernel keeps a registered buffer.
};

class MemoryTable {
 public:
  MemoryTable(const Faults& faults, Counters& counters) : faults_(faults), counters_(counters) {}

  // nullptr: refused, with errno set.
  Memory* add(ibv_pd* domain, std::uint64_t address, std::size_t size, unsigned access);
  Memory* add_dmabuf(ibv_pd* domain, std::uint64_t offset, std::size_t size, std::uint64_t address,
                     int fd, unsigned access);
  void remove(Memory* memory);
  bool has_any_of(const ibv_pd* domain) const;

  // nullptr: not a key of this domain, or it does not cover the whole range.
  Memory* find(std::uint32_t key, const ibv_pd* domain, std::uint64_t address,
               std::size_t size) const;
  bool read(const Memory& memory, std::span<std::byte> to, std::uint64_t address);
  bool write(Memory& memory, std::uint64_t address, std::span<const std::byte> from);
  // Makes the device's held writes visible, as a PCIe read does to all writes before it.
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
  std::uint32_t next_key_ = 0x1000;  // Never used again, so that a stale one is detected.
  std::map<std::uint32_t, Memory*> by_key_;
  std::vector<Held> held_;
};

}  // namespace ztcp::soft_nic
