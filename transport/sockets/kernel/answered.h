// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include "core/fd.h"

namespace ztcp::sockets {

// Whether the peer's TCP has ever sent a segment on this connection, even a RST. True where the
// kernel does not count segments (before 4.2).
bool was_answered(const Fd& fd);

}  // namespace ztcp::sockets
