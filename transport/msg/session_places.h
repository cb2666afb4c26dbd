// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// For a NIC with several acceptors, one per lane: which of them has a session. All flows of a
// session belong to one acceptor, whichever queue they arrive by. Also counts the sessions of each
// acceptor, to balance them.
#pragma once

#include <cstdint>
#include <optional>

namespace ztcp::msg {

class SessionPlaces {
 public:
  virtual ~SessionPlaces() = default;

  // The acceptor that has the session, or remembers how it ended.
  virtual std::optional<std::uint8_t> find(std::uint64_t session) = 0;
  // False: another acceptor has it.
  virtual bool take(std::uint64_t session, std::uint8_t place) = 0;
  // That acceptor no longer remembers the session.
  virtual void forget(std::uint64_t session, std::uint8_t place) = 0;

  // A new session arrives at `place` for the `tries`th time: an acceptor with clearly fewer
  // sessions, if another try is worth it.
  virtual std::optional<std::uint8_t> better_place(std::uint8_t place, std::uint32_t tries) = 0;
  // That acceptor is full, or has room again.
  virtual void note_full(std::uint8_t place, bool is_full) = 0;
  // An acceptor with room for a new session when `place` has none; nothing: every acceptor is full.
  virtual std::optional<std::uint8_t> place_with_room(std::uint8_t place) = 0;
  // A session began there after so many tries; a session ended there.
  virtual void note_begun(std::uint8_t place, std::uint32_t tries) = 0;
  virtual void note_ended(std::uint8_t place) = 0;
};

}  // namespace ztcp::msg
