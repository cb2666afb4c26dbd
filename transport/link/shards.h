// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The queues of one port, each a link of its own thread, with mailboxes between them: a frame that
// the device delivered to another queue than its connection's is handed over by pointer. The stack
// sets its owner (RxFrame::hand_to), release() posts it, the other shard's receive() returns it,
// and that one's release() sends it back to the queue it came by, which alone returns it to the
// device.
//
// Without locks: each pair of shards has rings that one of them fills and the other empties.
#pragma once

#include <memory>
#include <vector>

#include "transport/link/link.h"

namespace ztcp::link {

// Most frames that a shard has handed over at once; further ones are dropped, as by a full ring.
// They count as kept frames.
inline constexpr std::size_t kMostHandedOver = 256;

// The links have the same capabilities, except `shard`. All of them end with the last.
std::vector<std::unique_ptr<Link>> join_shards(std::vector<std::unique_ptr<Link>> queues);

}  // namespace ztcp::link
