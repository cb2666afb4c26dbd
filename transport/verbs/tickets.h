// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whose the tickets are that rails of TCP are dialled with, so that a stranger's is known for one
// without a look at any connection. Few at a time: each goes when it is said. The control thread's.
#pragma once

#include <cstddef>
#include <map>
#include <new>

#include "transport/verbs/exchange.h"

namespace ztcp::verbs {

struct ControlConnection;

class Tickets {
 public:
  // In the place of the one that the control connection had for the rail. Without memory it is
  // nobody's: who says it is turned away, and offers the rail again.
  void give(const Ticket& ticket, ControlConnection& control, std::size_t rail) noexcept {
    const Holder holder{&control, rail};
    std::erase_if(holders_, [&](const auto& one) { return one.second == holder; });
    try {
      holders_.emplace(ticket, holder);
    } catch (const std::bad_alloc&) {
    }
  }
  // Whose it is, which it is but once; null: a stranger's.
  ControlConnection* take(const Ticket& ticket) {
    const auto found = holders_.find(ticket);
    if (found == holders_.end()) return nullptr;
    ControlConnection* const out = found->second.control;
    holders_.erase(found);
    return out;
  }
  // The control connection is over.
  void forget(const ControlConnection& control) {
    std::erase_if(holders_, [&](const auto& one) { return one.second.control == &control; });
  }

 private:
  struct Holder {
    ControlConnection* control = nullptr;
    std::size_t rail = 0;
    friend bool operator==(const Holder&, const Holder&) = default;
  };

  std::map<Ticket, Holder> holders_;
};

}  // namespace ztcp::verbs
