// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the pending connection (no handshake yet) that makes room for a new one: the oldest of
// the address that has the most. So a host that opens many pushes out only its own, and among hosts
// with few the one that has been silent longest goes, which is least likely to be a peer: a peer
// sends its hello right after it connects. Pure; two passes, no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/address.h"

namespace ztcp {

// The class of an address among `classes`. Two addresses of one class count as one; addresses of
// other classes are not affected.
inline std::size_t class_of(const IpAddress& address, std::size_t classes) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const std::uint64_t bits = (address.high * kOdd ^ address.low) * kOdd;
  return static_cast<std::size_t>((bits >> 32) % classes);
}

// `pending` is in order of arrival. `address_of(one)`: nullptr for a connection that must stay.
// Returns an iterator to the victim, or the end if all must stay.
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
