// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>
#include <string>

#include "core/address.h"

namespace ztcp::watch {

// The process at the other end, as its hello describes it.
struct Peer {
  IpAddress nic;
  std::uint32_t pid = 0;  // 0: the process has sent no hello; its host is empty, too.
  std::string host;       // Printable.
  // The process shares its NIC with other processes: its connections belong to the host's kernel,
  // which ends them with the process.
  bool shares_nic = false;
};

}  // namespace ztcp::watch
