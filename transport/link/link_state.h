// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>

namespace ztcp::link {

enum class LinkState : std::uint8_t {
  kUp,
  kDown,  // No carrier now. TCP decides what to make of it; the link only tells.
  // This link carries nothing any more, for ever:
  kGone,   // the NIC was taken out of the machine;
  kReset,  // its host or its firmware reset it under us, and what we had set up in it is lost.
};
constexpr bool is_lost(LinkState state) {
  return state == LinkState::kGone || state == LinkState::kReset;
}

}  // namespace ztcp::link
