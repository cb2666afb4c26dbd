// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>

namespace ztcp {

enum class LinkState : std::uint8_t {
  kUp,
  kDown,  // No carrier now. The link only reports; TCP decides.
  // This link never carries anything again:
  kGone,      // the NIC was removed from the machine;
  kReset,     // its host or its firmware reset it, and our set-up in it is lost;
  kDetached,  // the program that sends frames to the link was taken off the interface.
};
constexpr bool is_lost(LinkState state) {
  return state == LinkState::kGone || state == LinkState::kReset || state == LinkState::kDetached;
}

}  // namespace ztcp
