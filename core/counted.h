// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A number with its noun, for messages: "1 NIC", "2 NICs".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ztcp {

inline std::string counted(std::uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

}  // namespace ztcp
