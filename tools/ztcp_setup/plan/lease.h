// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Who holds the DHCP lease of an address: once ztcp has the NIC, nobody renews it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/machine/machine.h"
#include "transport/core/address.h"

namespace ztcp::setup {

struct Lease {
  std::string client;            // "systemd-networkd"
  std::string file;              // Where it says so.
  std::string server;            // Empty: not told.
  std::uint32_t lifetime_s = 0;  // As the server gave it; 0: not told.
};

// From the files of systemd-networkd, NetworkManager, dhclient and dhcpcd.
std::optional<Lease> find_lease(config::Machine& machine, const std::string& interface,
                                std::uint32_t index, Ipv4Address address);

}  // namespace ztcp::setup
