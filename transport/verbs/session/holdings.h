// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The pieces of messages in flight that a receiver holds. Its sender needs to know them when a rail
// fails.
//
// Each message arrives once, and its buffer is not written after it is done, although a rail may
// fail at any moment. This rests on a fixed order of steps, fencing:
//
//   1. The end that finds a failed rail brings its own queue pairs of it into the error state,
//      processes the remaining completions, destroys the queue pairs, and tells the other end over
//      the exchange's TCP connection. The other end then does the same, and answers in the same
//      way. A receiver first waits until each receive that it had posted has come back, and then
//      sends its holdings: the sender may have been told that a piece has arrived, and no longer
//      have it.
//   2. A piece that was given to the rail and is not completed is sent over another rail only after
//      the receiver has said that it has fenced the rail, and that it does not hold the piece. The
//      same holds for a row of slots: it is written again after the sender has fenced the rail.
//
// A receiver's device that has failed gives no receives back, and its answers to commands are
// worthless: it may still write to memory. Then the sender fences first and tells the pieces that
// it saw arrive over the rail, and the receiver fences after the packets in the network have
// passed. A piece that arrived in this way and was not reported ends the connection.
//
// A queue pair in the error state takes no more packets (IBA 10.3.1), a destroyed one has no write
// left inside the device, and the device confirms the command behind all its writes. So once the
// receiver has spoken, nothing that the sender posted on the rail can reach memory, even if it is
// still in the network or in a NIC's buffer. Until then the sender gives the piece to no other
// rail. Hence a piece always belongs to one rail alone; a buffer is done once all its pieces have
// arrived, over any rails; and then no rail has a piece of it left.
//
// On a rail of TCP (piece_stream.h) an end is fenced when it has closed its stream, because it
// writes the received bytes itself. It holds the pieces that have arrived whole; another rail
// carries the others again.
//
// A packet that a NIC sends again because its acknowledgement was lost does no harm: a responder
// recognises packets by their number, and does not execute one twice (IBA 9.7.5.1.2).
#pragma once

#include <array>
#include <cstdint>

#include "transport/verbs/session/slot.h"

namespace ztcp::verbs {

struct Holdings {
  // The last post in each row when the receiver fenced.
  std::array<std::uint32_t, kPosts> sequences{};
  // The pieces that have arrived for its slots: a bit for each.
  std::array<std::uint8_t, kSlots> pieces{};

  // A row has a later post than the slot's only if that was done; an earlier one, if the slot's was
  // posted when nothing could arrive over the rail any more.
  bool has(std::uint32_t slot, std::uint32_t sequence, std::uint32_t piece) const {
    const auto later = static_cast<std::int32_t>(sequences[slot / kMaxReceives] - sequence);
    return later > 0 || (later == 0 && (pieces[slot] >> piece & 1U) != 0);
  }
};
static_assert(sizeof(Holdings) == 384);

}  // namespace ztcp::verbs
