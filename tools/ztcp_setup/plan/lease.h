// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the DHCP client that holds an address's lease: once ztcp has the NIC, it is not renewed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/machine/machine.h"
#include "core/address.h"

namespace ztcp::setup {

struct Lease {
  std::string client;            // "systemd-networkd"
  std::string file;              // The client's record of it.
  std::string server;            // Empty: unknown.
  std::uint32_t lifetime_s = 0;  // From the server; 0: unknown.
};

// From the files of systemd-networkd, NetworkManager, dhclient and dhcpcd.
std::optional<Lease> find_lease(config::Machine& machine, const std::string& interface,
                                std::uint32_t index, Ipv4Address address);

}  // namespace ztcp::setup
