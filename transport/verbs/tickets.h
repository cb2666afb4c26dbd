// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The tickets with which rails of TCP are dialled, by connection: a stranger's ticket is rejected
// without asking any connection. There are few at a time, since each is used once. Used under the
// control thread's lock.
#pragma once

#include <cstddef>
#include <map>
#include <new>

#include "transport/verbs/exchange.h"

namespace ztcp::verbs {

struct ControlConnection;

class Tickets {
 public:
  // Replaces the ticket that the control connection had for the rail. Without memory the ticket is
  // not stored: its holder is rejected, and offers the rail again.
  void give(const Ticket& ticket, ControlConnection& control, std::size_t rail) noexcept {
    const Holder holder{&control, rail};
    std::erase_if(holders_, [&](const auto& one) { return one.second == holder; });
    try {
      holders_.emplace(ticket, holder);
    } catch (const std::bad_alloc&) {
    }
  }
  // The control connection of the ticket, which is used up; null: the ticket is unknown.
  ControlConnection* take(const Ticket& ticket) {
    const auto found = holders_.find(ticket);
    if (found == holders_.end()) return nullptr;
    ControlConnection* const out = found->second.control;
    holders_.erase(found);
    return out;
  }
  // The control connection has ended.
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
