// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The notes about rails that a connection sends to its peer (exchange.h). Notes are numbered, so
// that they may go over several paths: each counts once, in order, whichever path delivers it
// first. A note is kept until the peer has heard it, since its path may have ended on the way; a
// new path repeats it. The peer acknowledges notes, so few are kept. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "core/result.h"
#include "transport/verbs/exchange.h"

namespace ztcp::verbs {

class NoteLog {
 public:
  // A peer acknowledges almost all notes with its own next note.
  static constexpr std::size_t kMostKept = 1024;

  void add(const RailNote& note) {
    notes_.push_back(note);
    notes_.back().number = added_ + 1;
    ++added_;
  }
  bool has_new() const { return added_ != sent_; }
  // Passes on the notes that were not taken yet.
  template <class Send>
  void take_new(Send&& send) {
    send_after(sent_, send);
    sent_ = added_;
  }
  // Passes on again all that the peer has not heard, according to its `heard`; new notes stay new.
  template <class Send>
  Status repeat(std::uint32_t heard, Send&& send) {
    ZTCP_CHECK(forget(heard));
    send_after(heard, send);
    return {};
  }

  // Takes a note of the peer's. False: it was heard before. An error: it contradicts earlier notes.
  Result<bool> hear(const RailNote& told) {
    ZTCP_CHECK(forget(told.heard));
    // Each note of the peer's may cause one that is kept.
    if (notes_.size() > kMostKept) return fail(Errc::kProtocol, "a peer that acknowledges no note");
    if (told.number <= heard_) return false;
    if (told.number != heard_ + 1) return fail(Errc::kProtocol, "a note ahead of others");
    ++heard_;
    return true;
  }
  std::uint32_t heard() const { return heard_; }

 private:
  template <class Send>
  void send_after(std::uint32_t number, Send&& send) {
    for (RailNote& note : notes_) {
      if (note.number <= number) continue;
      note.heard = heard_;
      send(note);
    }
  }
  Status forget(std::uint32_t heard) {
    if (heard > added_) return fail(Errc::kProtocol, "a note was heard that nobody said");
    while (!notes_.empty() && notes_.front().number <= heard) notes_.pop_front();
    return {};
  }

  std::list<RailNote> notes_;
  std::uint32_t added_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t heard_ = 0;  // The last note of the peer's.
};

}  // namespace ztcp::verbs
