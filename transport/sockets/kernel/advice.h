// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Advice to the operator about errors of kernel sockets: the cause and the command that helps.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/local_addresses.h"
#include "core/result.h"
#include "transport/sockets/kernel/device.h"

namespace ztcp::sockets {

// Values of Error::where on which the advice depends.
inline constexpr char kBindToDevice[] = "SO_BINDTODEVICE";
inline constexpr char kBind[] = "bind";

// How to fix a failed listen, as the end of a sentence ("; ..."); empty: no fix is known.
std::string listen_advice(const Error& error, const Device& device, const std::string& config_path);
// The same for an address that bind() refuses, by `all` addresses of this host.
std::string address_advice(IpAddress address, std::span<const LocalAddress> all);
// The same for an unreachable peer whose address this host has, too; empty: it does not have it.
std::string own_address_advice(IpAddress peer, std::span<const LocalAddress> all);
// The same for a lack of descriptors, memory or threads.
std::string resource_advice(int sys_errno);
// Which resource of this host one more connection lacks, and the command that helps. Empty: the
// error is no shortage.
std::string shortage(const Error& error, const Device& device);

// The listener's ports and address, for firewall rules: "ports 7001-7008 of 10.0.0.1".
std::string ports_text(const Device& device, const Endpoint& listening);
// The state of an interface of this host and the command that helps: "eth0 of this host is down:
// ...". Empty: it is up.
std::string interface_advice(InterfaceState state, const std::string& interface);
// Advice about a failed connection where the transports' common advice does not fit kernel sockets;
// empty: it does.
std::string failure_advice(Errc code, const Device& device);

}  // namespace ztcp::sockets
