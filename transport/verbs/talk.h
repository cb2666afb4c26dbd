// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel TCP connection beside a connection's queue pairs: over it they are agreed upon
// (exchange.h), and it tells afterwards when the peer closes or dies. The control thread's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/link/fd.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/exchange.h"

namespace ztcp::verbs {

inline TimePoint clock_now() {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

struct Talk {
  enum class State : std::uint8_t {
    kDialling,
    kAwaitAnswer,
    kAwaitHello,
    kAwaitReady,
    kBonding,  // All is agreed upon, and a connection manager joins the queue pairs.
    kOpen,     // The connection is ready, and its comm lives.
    kLeaving,  // The comm is closed; the peer may still want our acknowledgements.
    kGone,
  };

  Talk(link::Fd opened, Endpoint peer, State begin, TimePoint ends)
      : fd(std::move(opened)), remote(peer), state(begin), deadline(ends) {}

  // False: the peer does not hear it.
  template <class Record>
  bool send(const Record& record) {
    return send(std::as_bytes(std::span(&record, 1)));
  }
  bool send(std::span<const std::byte> bytes);
  // The connection is ready, and the peer is there.
  bool is_heard() const { return state == State::kOpen && !is_peer_gone; }
  void take_leave(std::uint8_t code, std::string_view why) { send(make_farewell(code, why)); }

  link::Fd fd;
  const Endpoint remote;
  State state;
  TimePoint deadline;
  TimePoint rails_due = kNever;  // When there is something to do about the connection's rails.
  bool is_peer_gone = false;
  RecordReader reader;
  std::shared_ptr<Connection> connection;  // Null: nobody said hello.
  Cookie cookie{};
  Hello hello;
  Answer answer;
};

}  // namespace ztcp::verbs
