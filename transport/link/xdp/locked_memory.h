// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>
#include <string>

namespace ztcp::link::xdp {

// Why this process may not lock the packet memory of its sockets, with the limit and the command
// that raises it; empty: it may, as far as it can see. The kernel counts the locked memory of all
// processes of a user together.
std::string locked_memory_shortage(std::uint64_t needed_bytes);

}  // namespace ztcp::link::xdp
