// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>

namespace ztcp::link {

// Bytes of a frame beside its IP packet: an Ethernet header with one VLAN tag.
inline constexpr std::uint32_t kFrameOverheadBytes = 18;

}  // namespace ztcp::link
