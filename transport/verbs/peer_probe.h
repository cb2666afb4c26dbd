// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Asks the peer's NIC for an answer while TCP to the peer is silent (PeerEvent::kSilent).
#pragma once

#include "core/clock.h"
#include "core/result.h"
#include "transport/verbs/traffic.h"

namespace ztcp::verbs {

// Posts a probe on each rail of RDMA, once a second. The queue pair's own timeout and retries
// (ack_timeout, NCCL_IB_TIMEOUT) decide whether the peer's NIC answers; a probe that fails loses
// its rail. kTimedOut: these are too long, or infinite, and no rail has answered for 10 minutes to
// an hour. Under the connection's lock.
Status probe_peer(Traffic& traffic, TimePoint now);

}  // namespace ztcp::verbs
