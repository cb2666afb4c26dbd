// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's facts about an interface that stays with it below a link of ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/address.h"
#include "core/netlink.h"
#include "core/result.h"

namespace ztcp::link::xdp {

struct InterfaceFacts {
  unsigned index = 0;
  std::string name;
  std::string kind;  // "veth", "bond", "vlan"; empty for hardware.
  MacAddress mac;
  std::uint32_t mtu_bytes = 0;
  bool is_up = false;  // As its administrator wants it.
  bool has_carrier = false;
  bool is_ethernet = false;
  unsigned master = 0;              // Index of the bond or bridge that it belongs to; 0: none.
  std::uint32_t program_id = 0;     // The XDP program on it; 0: none.
  bool has_native_program = false;  // The driver runs it.
};

// Nothing: there is no such interface.
Result<std::optional<InterfaceFacts>> read_interface(netlink::Session& kernel,
                                                     const std::string& name);
Result<std::optional<InterfaceFacts>> read_interface(netlink::Session& kernel, unsigned index);

// Number of its receive queues; 1 where the driver does not tell.
std::uint32_t receive_queues(const std::string& name);

// Why such a link can't be on this interface: it is virtual on top of others, or belongs to
// one that is. Empty: it can.
Result<std::string> obstacle_on(netlink::Session& kernel, const InterfaceFacts& interface);

// The interface of a config. Logs why a link of this kind, "xdp", can't be on it.
Result<InterfaceFacts> find_interface(const char* kind, const std::string& name,
                                      std::uint16_t mtu_bytes);

}  // namespace ztcp::link::xdp
