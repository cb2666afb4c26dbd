// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Where a NIC has several acceptors, one for each of its queues: which of them has a session. All
// flows of a session belong to one acceptor, whichever queue the network puts them into. And how
// many sessions each has, so that none has all the work.
#pragma once

#include <cstdint>
#include <optional>

namespace ztcp::msg {

class SessionPlaces {
 public:
  virtual ~SessionPlaces() = default;

  // The acceptor that has the session, or remembers how it ended.
  virtual std::optional<std::uint8_t> find(std::uint64_t session) = 0;
  // False: another has it.
  virtual bool take(std::uint64_t session, std::uint8_t place) = 0;
  // Nothing is remembered of it there any more.
  virtual void forget(std::uint64_t session, std::uint8_t place) = 0;

  // A new session knocks at `place` for the `tries`th time: where there are clearly fewer, if it is
  // worth to look for that.
  virtual std::optional<std::uint8_t> better_place(std::uint8_t place, std::uint32_t tries) = 0;
  // That acceptor has no room for another session, or has some again.
  virtual void note_full(std::uint8_t place, bool is_full) = 0;
  // Where a new session that `place` has no room for may go; nothing: every acceptor is full.
  virtual std::optional<std::uint8_t> place_with_room(std::uint8_t place) = 0;
  // One began there after so many tries; and ended.
  virtual void note_begun(std::uint8_t place, std::uint32_t tries) = 0;
  virtual void note_ended(std::uint8_t place) = 0;
};

}  // namespace ztcp::msg
