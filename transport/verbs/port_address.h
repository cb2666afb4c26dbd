// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The address of a port for its peers: its GID, and in InfiniBand its LID. Either may change while
// a job runs: an address of the interface is removed and comes back at another index, or the subnet
// manager assigns another LID.
#pragma once

#include <cstdint>
#include <string>

#include "core/gid.h"
#include "core/result.h"

namespace ztcp::verbs {

struct OpenDevice;

struct PortAddress {
  GidEntry gid;
  std::uint16_t lid = 0;
  friend bool operator==(const PortAddress&, const PortAddress&) = default;
};

// Which entry of the port's table is taken.
struct GidRule {
  int index = -1;     // -1: the best that there is.
  std::string by;     // The source of the rule: "NCCL_IB_GID_INDEX".
  std::string types;  // The folder of sysfs with the type of each GID.
  // The preference, and the variables that gave it: "NCCL_IB_ADDR_RANGE=10.1.0.0/16".
  GidWish wish;
  std::string wished_by;
};

// How `chosen` came about by the rule: "chosen by itself", "by NCCL_IB_GID_INDEX".
std::string choice_text(const GidRule& rule, const GidEntry& chosen);

// The text is why it has none.
Result<PortAddress, std::string> read_address(const OpenDevice& device, std::uint8_t port,
                                              const GidRule& rule);
// Reads the address again: the port keeps its GID as long as the table has it, at any index.
Result<PortAddress, std::string> read_address_again(const OpenDevice& device, std::uint8_t port,
                                                    const GidRule& rule, const GidEntry& had);

}  // namespace ztcp::verbs
