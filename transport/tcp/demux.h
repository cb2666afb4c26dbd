// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the connection of a segment: an open-addressed table of fixed size. Linear probing, and
// removal shifts back instead of leaving tombstones, so lookups never get slower. Owned by a
// Stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/core/address.h"

namespace ztcp::tcp {

class Demux {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The Stack has one address of its own, so three numbers name a connection, in 64 bits.
  using Key = std::uint64_t;
  static constexpr Key key(Endpoint remote, std::uint16_t local_port) {
    return std::uint64_t{remote.address.value} << 32 | std::uint64_t{remote.port} << 16 |
           local_port;
  }

  // `secret` keeps strangers from choosing colliding keys.
  Demux(std::size_t max_entries, std::uint64_t secret);

  std::uint32_t find(Key key) const;
  // The key is not in the table, and fewer than max_entries are.
  void insert(Key key, std::uint32_t value);
  void remove(Key key);
  std::size_t size() const { return size_; }

 private:
  struct Entry {
    Key key = 0;
    std::uint32_t value = kNone;
  };
  std::size_t home(Key key) const;
  std::size_t position(Key key) const;

  std::vector<Entry> entries_;
  std::size_t mask_;
  unsigned shift_;
  std::uint64_t secret_;
  std::size_t size_ = 0;
};

}  // namespace ztcp::tcp
