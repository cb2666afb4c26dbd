// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What an operator does about what kernel sockets lack.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "transport/core/local_addresses.h"
#include "transport/core/result.h"
#include "transport/sockets/device.h"

namespace ztcp::sockets {

// Where an error came from, of those whose advice depends on it.
inline constexpr char kBindToDevice[] = "SO_BINDTODEVICE";
inline constexpr char kBind[] = "bind";

// What mends that there is no listener, as the end of a sentence; empty: nothing known does.
std::string listen_advice(const Error& error, const Device& device, const std::string& config_path);
// What to do about an address that nothing can be bound to, by what this host has, likewise.
std::string address_advice(IpAddress address, std::span<const LocalAddress> all);
// Of a peer that is not reached at an address that this host has, too; empty: it has it not.
std::string own_address_advice(IpAddress peer, std::span<const LocalAddress> all);
// The same of whatever else a device needs: descriptors, memory, threads.
std::string resource_advice(int sys_errno);
// What there is none of for one more connection beside so many, and what mends it. Empty: it is
// nothing of this machine's.
std::string shortage(const Error& error, const Device& device);

// Where its listener is reached, for firewalls: "ports 7001-7008 of 10.0.0.1".
std::string ports_text(const Device& device, const Endpoint& listening);
// What is to be done about an interface of this host in this state: "eth0 of this host is down:
// ..."
std::string interface_advice(InterfaceState state, const std::string& interface);
// About a failed connection, where kernel sockets call for other than the usual: "see ...".
std::string failure_advice(Errc code, const Device& device);

}  // namespace ztcp::sockets
