// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a connection says to its peer about rails (exchange.h), numbered, so that it may go over
// several paths and counts once, in order, whichever brings it first. A note is kept until the peer
// has heard it, since the path that it went over may have ended on the way: a path that begins
// brings it again. The peer answers what it hears, so few are kept. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "transport/core/result.h"
#include "transport/verbs/exchange.h"

namespace ztcp::verbs {

class NoteLog {
 public:
  // A peer that talks has heard almost all by its own next note.
  static constexpr std::size_t kMostKept = 1024;

  void add(const RailNote& note) {
    notes_.push_back(note);
    notes_.back().number = added_ + 1;
    ++added_;
  }
  bool has_new() const { return added_ != sent_; }
  // Those that have not been taken yet.
  template <class Send>
  void take_new(Send&& send) {
    send_after(sent_, send);
    sent_ = added_;
  }
  // Those that the peer has not heard, as it says by its `heard`; new ones stay so.
  template <class Send>
  Status repeat(std::uint32_t heard, Send&& send) {
    ZTCP_CHECK(forget(heard));
    send_after(heard, send);
    return {};
  }

  // Of the peer's. Whether it is news, to be heeded. An error: it says what can't be.
  Result<bool> hear(const RailNote& told) {
    ZTCP_CHECK(forget(told.heard));
    // Each note of the peer's may be answered by one that is kept.
    if (notes_.size() > kMostKept)
      return fail(Errc::kProtocol, "a peer that hears none of what it is told");
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
  std::uint32_t heard_ = 0;  // Of the peer's.
};

}  // namespace ztcp::verbs
