// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>
#include <string>

#include "core/address.h"

namespace ztcp::setup {

// The work of an XDP program of ztcp's: TCP segments to these ports of this address go past the
// kernel, to the jobs that have the interface.
struct XdpSteering {
  std::string interface;
  IpAddress address;
  std::uint16_t listen_port = 0;
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  std::uint16_t processes = 1;  // With listening ports from listen_port on.
  friend bool operator==(const XdpSteering&, const XdpSteering&) = default;
};

}  // namespace ztcp::setup
