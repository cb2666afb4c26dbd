// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel TCP connection beside a connection's queue pairs: over it they are agreed upon
// (exchange.h), and it tells afterwards when the peer closes or dies. Over several rails there are
// further ones, its paths (control_paths.cc), and the peer is gone when the last has ended. The
// control thread's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/link/fd.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/exchange.h"

namespace ztcp::verbs {

inline TimePoint clock_now() {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

struct ControlConnection {
  static constexpr Duration kFirstDialPause = std::chrono::milliseconds(50);
  static constexpr Duration kLongestDialPause = std::chrono::seconds(1);

  enum class State : std::uint8_t {
    kPausing,  // The peer ended it before it said anything; it is dialled again.
    kDialling,
    kAwaitAnswer,
    kAwaitHello,
    kQueued,  // The hello was heard; its queue pairs are made when those before it are.
    kAwaitReady,
    kAwaitManager,  // All is agreed upon, and a connection manager joins the queue pairs.
    kOpen,          // The connection is ready, and its comm lives.
    kLeaving,       // The comm is closed; the peer may still want our acknowledgements.
    kAwaitPath,     // Of a path: it is dialled, and what the peer says to the ticket is awaited.
    kPath,
    kGone,
  };

  // Where the sender has a path to be.
  struct Route {
    Rail* over = nullptr;
    Endpoint remote;
    ControlConnection* path = nullptr;  // The control connection itself, until it has ended.
    TimePoint due = kNever;
    Duration pause{};
  };

  ControlConnection(link::Fd opened, Endpoint peer, State begin, TimePoint ends)
      : fd(std::move(opened)), remote(peer), state(begin), deadline(ends) {}

  // Over this path alone. False: the peer does not hear it.
  template <class Record>
  bool send(const Record& record) {
    if constexpr (std::is_same_v<Record, RailNote>) {
      if (!has_room()) return close_path(), false;
    }
    return send(records::bytes_of(record));
  }
  bool send(std::span<const std::byte> bytes);
  // Ends this TCP connection, and tells the peer that it alone ends.
  void close_path();
  // The peer hears and tells by it, or did until the comm was closed.
  bool is_joined() const {
    return state == State::kOpen || state == State::kLeaving || state == State::kPath;
  }
  // The connection is ready, and the peer is there.
  bool is_heard() const {
    return state == State::kOpen && !connection->peer_status().is_unreachable();
  }
  // Over all paths.
  template <class Record>
  void tell(const Record& record) {
    send(record);
    for (ControlConnection* const path : paths) path->send(record);
  }
  void send_close(std::uint8_t code, std::string_view why) { tell(make_close_record(code, why)); }
  // Null: it is no further path.
  bool is_path() const { return owner != nullptr; }
  TimePoint routes_due() const {
    TimePoint out = kNever;
    for (const Route& route : routes) out = std::min(out, route.due);
    return out;
  }

  link::Fd fd;
  const Endpoint remote;
  State state;
  TimePoint deadline;
  TimePoint waits_until = kNever;  // However often the peer tells it to wait.
  TimePoint dial_due = kNever;     // When it is dialled again.
  std::size_t dials = 0;           // Before this one.
  Duration dial_pause = kFirstDialPause;
  std::string last_failure;      // Of those that were dialled before.
  TimePoint rails_due = kNever;  // When there is something to do about the connection's rails.
  bool is_cut = false;  // By this end, or by the peer as it said: its end tells of no death.
  RecordReader reader;
  std::shared_ptr<Connection> connection;  // Null: nobody said hello.
  Rail* over = nullptr;                    // On whose address it is.
  ControlConnection* owner = nullptr;      // Of a path.
  std::vector<ControlConnection*> paths;   // Further ones, that the peer hears.
  std::vector<Route> routes;               // A sender's, of all paths.
  Cookie cookie{};
  Hello hello;
  Answer answer;

 private:
  bool has_room() const;
};

}  // namespace ztcp::verbs
