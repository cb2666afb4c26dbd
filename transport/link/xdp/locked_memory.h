// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>
#include <string>

namespace ztcp::link::xdp {

// "10240 KiB of memory, and this process may lock 8192 KiB ...": why this process may not lock that
// much for its sockets, with the command that raises the limit; empty: it may, as far as it can
// see. The kernel counts the locked memory of all processes of a user together.
std::string locked_memory_shortage(std::uint64_t needed_bytes);

}  // namespace ztcp::link::xdp
