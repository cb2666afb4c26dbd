// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails of a connection that fail and rejoin, and the notes between the ends then
// (verbs/session/holdings.h): in order each way, at any time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/verbs_connection.h"

namespace ztcp::sim {

class RailOutages {
 public:
  // Careless ends hand their pieces over without waiting for the other end's note.
  explicit RailOutages(Connection& connection, bool is_careless = false)
      : c_(connection), is_careless_(is_careless) {}

  // This end detects a failure of the rail.
  void fail(bool at_sender, std::uint32_t rail) {
    if (!rails_[rail].is_fenced[at_sender] && rails_[rail].is_proven) fence(at_sender, rail);
  }

  // Delivers one pending note or rejoins one rail, if there is any.
  void step() {
    const bool to_sender = c_.wire.draw() % 2 == 0;
    if (!notes_[to_sender].empty()) {
      const Note note = notes_[to_sender].front();
      notes_[to_sender].pop_front();
      return hear(to_sender, note);
    }
    const auto rail = static_cast<std::uint32_t>(c_.wire.draw() % rails_.size());
    if (rails_[rail].has_heard[0] && rails_[rail].has_heard[1]) rejoin(rail);
  }

  int outages() const { return outages_; }

 private:
  struct Note {
    std::uint32_t rail = 0;
    bool is_proof = false;  // The rail has rejoined.
    verbs::Holdings holdings;
  };
  struct Rail {
    std::array<bool, 2> is_fenced{};  // By end; the sender is the second.
    std::array<bool, 2> has_heard{};  // The other end has fenced it.
    bool is_proven = true;
  };

  void fence(bool at_sender, std::uint32_t rail) {
    ++outages_;
    // The receiver polls all its completions. Those of the sender are lost with its queue, or were
    // polled.
    if (!at_sender || c_.wire.draw() % 2 == 0) {
      EXPECT_TRUE(c_.poll_all());
    }
    c_.fence(at_sender, rail);
    rails_[rail].is_fenced[at_sender] = true;
    if (at_sender)
      c_.sender->lose_rail(rail);
    else
      c_.receiver->lose_rail(rail);
    notes_[!at_sender].push_back({rail, false, c_.receiver->holdings()});
    if (is_careless_) hand_over(at_sender, notes_[!at_sender].back());
  }

  void hear(bool at_sender, const Note& note) {
    if (note.is_proof) {
      rails_[note.rail].is_proven = true;
      EXPECT_TRUE(c_.receiver->rejoin_rail(note.rail));
      return;
    }
    if (!rails_[note.rail].is_fenced[at_sender]) fence(at_sender, note.rail);
    rails_[note.rail].has_heard[at_sender] = true;
    if (!is_careless_) hand_over(at_sender, note);
  }

  void hand_over(bool at_sender, const Note& note) {
    EXPECT_TRUE(at_sender ? c_.sender->hand_over(note.rail, note.holdings)
                          : c_.receiver->hand_over(note.rail));
  }

  void rejoin(std::uint32_t rail) {
    rails_[rail] = {.is_proven = false};
    c_.reopen(false, rail);
    EXPECT_TRUE(c_.receiver->reopen_rail(rail));
    c_.reopen(true, rail);
    EXPECT_TRUE(c_.sender->rejoin_rail(rail));
    notes_[0].push_back({rail, true, {}});
  }

  Connection& c_;
  const bool is_careless_;
  std::array<Rail, verbs::kMaxRails> rails_{};
  std::array<std::deque<Note>, 2> notes_;  // By receiving end.
  int outages_ = 0;
};

}  // namespace ztcp::sim
