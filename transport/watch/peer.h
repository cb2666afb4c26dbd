// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>
#include <string>

#include "transport/core/address.h"

namespace ztcp::watch {

// The process at the other end, as it named itself.
struct Peer {
  IpAddress nic;
  std::uint32_t pid = 0;
  std::string host;  // Printable.
  // With other processes: connections to it are their kernel's, which ends them with the process.
  bool shares_nic = false;
};

}  // namespace ztcp::watch
