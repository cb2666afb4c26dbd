// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The direction of a connection's messages, seen from this end.
#pragma once

#include <cstdint>

namespace ztcp {

enum class Direction : std::uint8_t { kSend, kReceive };

}  // namespace ztcp
