// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a receiver has of the messages under way, for a sender one of whose rails has failed.
//
// Each message arrives once, and nobody writes into its buffer once it is done, though a rail may
// fail at any moment. That rests on one order of things, fencing:
//
//   1. Whoever finds a rail failed brings its own queue pairs of it into the error state, takes
//      what their completion queue tells still, destroys them, and tells the other end over the
//      exchange's TCP connection. The other end does the same when it hears it, and answers in the
//      same words. A receiver waits before until each receive that it had posted has come back, and
//      tells its holdings: the sender may have been told that a piece has arrived, and does not
//      have it any more.
//   2. A piece that was given to the rail and not completed goes out over another one only when the
//      receiver has said that it has fenced the rail, and that it does not hold the piece. So does
//      a row of slots that was written over it, when the sender has fenced it.
//
// A receiver's device that has failed gives no receives back, and its answer to a command is worth
// nothing: it may write to memory still. Then the sender fences first, its word has what it saw
// arrive over the rail, and the receiver fences once what was in the network has passed. What
// arrived so and was not reported ends the connection.
//
// A queue pair in the error state takes no packet any more (IBA 10.3.1), one that was destroyed has
// no write under way inside the device, and the device's answer to the command comes behind all
// that it wrote. So from the receiver's word on nothing that the sender posted on the rail, and
// that roams the network or a NIC's buffers still, can reach memory. Before that word the sender
// gives the piece to nobody else. Hence a piece is always one rail's alone; a buffer is done once
// all its pieces have come, over whichever rails; and no other rail can then have a piece of it.
//
// Of a rail of TCP (piece_stream.h) an end is fenced when it has closed its stream: it lands itself
// what lands. It holds what has landed whole, and the rest another rail brings again.
//
// A packet that a NIC sends again because its acknowledgement was lost is no danger: a responder
// knows packets that it has carried out by their number and does not carry them out again
// (IBA 9.7.5.1.2).
#pragma once

#include <array>
#include <cstdint>

#include "transport/verbs/session/slot.h"

namespace ztcp::verbs {

struct Holdings {
  std::array<std::uint32_t, kPosts> sequences{};  // Of the last post in each row when it fenced.
  std::array<std::uint8_t, kSlots> pieces{};      // That have come for its slots: a bit for each.

  // A row has a later post than the slot's only once that was done; an earlier one, if it was
  // posted when nothing could come over the rail any more.
  bool has(std::uint32_t slot, std::uint32_t sequence, std::uint32_t piece) const {
    const auto later = static_cast<std::int32_t>(sequences[slot / kMaxReceives] - sequence);
    return later > 0 || (later == 0 && (pieces[slot] >> piece & 1U) != 0);
  }
};
static_assert(sizeof(Holdings) == 384);

}  // namespace ztcp::verbs
