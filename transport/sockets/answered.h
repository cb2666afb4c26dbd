// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include "transport/link/fd.h"

namespace ztcp::sockets {

// Whether a segment has ever come on this connection: the peer's TCP has said something, and be it
// RST. True where the kernel does not count them (before 4.2).
bool was_answered(const link::Fd& fd);

}  // namespace ztcp::sockets
