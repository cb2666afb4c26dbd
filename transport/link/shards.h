// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The queues of one port, each a link of its own thread's, with mailboxes between them: a frame
// that the device put into another queue than its connection's is handed to that one, by pointer.
// The stack says whose it is (RxFrame::hand_to), release() posts it, the other's receive() returns
// it, and its release() sends it back to the queue that it came by, which alone gives it to the
// device.
//
// Without locks: each pair of shards has rings that one of them fills and the other empties.
#pragma once

#include <memory>
#include <vector>

#include "transport/link/link.h"

namespace ztcp::link {

// Of its frames a shard hands over so many at once; more are dropped, as by a full ring. They count
// among those that are kept.
inline constexpr std::size_t kMostHandedOver = 256;

// The links say their capabilities alike, but for `shard`. All of them end with the last.
std::vector<std::unique_ptr<Link>> join_shards(std::vector<std::unique_ptr<Link>> queues);

}  // namespace ztcp::link
