// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Plain kernel TCP as a table of NCCL's, the measure for every plugin. As NCCL's own Socket
// transport without helper threads, its default outside of AWS and Google Cloud: one non-blocking
// socket per connection, a small header before each message, progress only inside test(). No
// zero-copy, no threads, no tuning besides TCP_NODELAY.
//
// Not for production: it trusts every peer.
#pragma once

#include <string>

#include "plugin/abi/nccl_abi.h"

namespace ztcp::perf {

extern const ncclNet_v11_t kPlainSockets;

// Listeners bind to this IPv4 or IPv6 address; call it first. False: no address.
bool listen_plainly_at(const std::string& address);

}  // namespace ztcp::perf
