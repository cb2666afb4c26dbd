// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which of the connections that have not shaken hands makes room for a new one: of the address that
// has most of them the oldest. So one host that opens many pushes out its own alone, and of hosts
// with few the one that has been silent the longest goes, which is the least likely to be a peer: a
// peer's hello comes right behind its connection. Pure; two passes, no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/core/address.h"

namespace ztcp {

// Into one of so many classes: two addresses in one class count as one, which hurts nobody else.
inline std::size_t class_of(const IpAddress& address, std::size_t classes) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const std::uint64_t bits = (address.high * kOdd ^ address.low) * kOdd;
  return static_cast<std::size_t>((bits >> 32) % classes);
}

// Of `pending`, in the order in which they came. `address_of(one)`: nullptr of one that stays.
// Returns its iterator; that of the end: all stay.
template <class Pending, class AddressOf>
auto pending_victim(Pending& pending, AddressOf&& address_of) {
  std::array<std::uint16_t, 512> counts{};
  std::uint16_t most = 0;
  for (const auto& one : pending)
    if (const IpAddress* const address = address_of(one))
      if (std::uint16_t& count = counts[class_of(*address, counts.size())]; ++count > most)
        most = count;
  for (auto it = pending.begin(); it != pending.end(); ++it)
    if (const IpAddress* const address = address_of(*it))
      if (counts[class_of(*address, counts.size())] == most) return it;
  return pending.end();
}

}  // namespace ztcp
