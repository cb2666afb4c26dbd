// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The congestion control of kernel sockets: the kernel's choice, or the one of
// tcp.kernel_congestion_control.
#pragma once

#include <string>

#include "core/fd.h"
#include "transport/sockets/kernel/device.h"

namespace ztcp::sockets {

// Chooses the kernel's congestion control `name` for a socket; a listener's connections inherit it.
// A refusal by the kernel is ignored; see congestion_refusal().
void set_congestion_control(const Fd& fd, const std::string& name);

// The name of the socket's congestion control; empty: the kernel does not tell.
std::string congestion_control_of(const Fd& fd);

// Why the kernel refuses the device's congestion control, and the command that helps, as a
// sentence; empty: it does not. `proc_root` is "/proc" outside tests.
std::string congestion_refusal(const Device& device, const std::string& proc_root = "/proc");

}  // namespace ztcp::sockets
