// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the connection of a segment: an open-addressed table of fixed size. Linear probing; removal
// shifts entries back instead of leaving tombstones, so lookups never get slower. Owned by a Stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/address.h"

namespace ztcp::tcp {

class Demux {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The Stack has a single address of its own, so three numbers identify a connection.
  struct Key {
    IpAddress remote;
    std::uint32_t ports = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  static constexpr Key key(Endpoint remote, std::uint16_t local_port) {
    return {remote.address, std::uint32_t{remote.port} << 16 | local_port};
  }

  // `secret` keeps attackers from choosing colliding keys.
  Demux(std::size_t max_entries, const std::array<std::uint64_t, 2>& secret);

  std::uint32_t find(const Key& key) const { return entries_[position(key)].value; }
  // The key must not be in the table yet, and the table must hold fewer than max_entries.
  void insert(const Key& key, std::uint32_t value);
  void remove(const Key& key);
  std::size_t size() const { return size_; }

 private:
  struct Entry {
    Key key;
    std::uint32_t value = kNone;
  };
  // Multiplies the address, mixed with the secret, in 128 bits, and the result with the ports once
  // more (Fibonacci hashing).
  std::size_t home(const Key& key) const {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{key.remote.low ^ secret_[0]} * (key.remote.high ^ secret_[1]);
    const auto mixed =
        static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    return ((mixed ^ key.ports) * kGolden) >> shift_;
  }
  std::size_t position(const Key& key) const {
    std::size_t at = home(key);
    while (entries_[at].value != kNone && entries_[at].key != key) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Entry> entries_;
  std::size_t mask_;
  unsigned shift_;
  std::array<std::uint64_t, 2> secret_;
  std::size_t size_ = 0;
};

}  // namespace ztcp::tcp
