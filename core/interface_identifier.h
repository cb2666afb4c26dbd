// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The address that a host forms out of a prefix of 64 bits and its MAC address (RFC 4862 section
// 5.5.3 d, RFC 4291 appendix A).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/address.h"

namespace ztcp {

inline IpAddress address_of_mac(IpAddress prefix, const MacAddress& mac) {
  constexpr std::uint8_t kUniversal = 2;  // Inverted: set for an address of a manufacturer.
  std::uint64_t identifier = 0;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    if (i == mac.bytes.size() / 2) identifier = identifier << 16U | 0xfffeU;
    identifier = identifier << 8U | mac.bytes[i];
  }
  return {prefix.high, identifier ^ std::uint64_t{kUniversal} << 56U};
}

}  // namespace ztcp
