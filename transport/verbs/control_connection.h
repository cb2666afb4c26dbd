// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel TCP connection beside a connection's queue pairs. The ends agree upon their queue
// pairs over it (exchange.h); afterwards it shows when the peer closes or dies. Over several rails
// there are further TCP connections, its paths (control_paths.cc), and the peer is gone when the
// last one has ended. Used under the control thread's lock.
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

#include "core/address.h"
#include "core/clock.h"
#include "core/fd.h"
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
    kPausing,  // The peer ended it before its answer; it is dialled again.
    kDialling,
    kAwaitAnswer,
    kAwaitHello,
    kQueued,  // The hello was received; queue pairs are made for one hello after the other.
    kAwaitReady,
    kAwaitManager,  // All is agreed upon; a connection manager joins the queue pairs.
    kOpen,          // The connection is ready, and its comm lives.
    kLeaving,       // The comm is closed; the peer may still want our acknowledgements.
    kAwaitPath,     // A path that was dialled waits for the receiver's reply to its ticket.
    kPath,
    kGone,
  };

  // A place where the sender keeps a path.
  struct Route {
    Rail* over = nullptr;
    Endpoint remote;
    // The control connection itself is the first path, until it has ended.
    ControlConnection* path = nullptr;
    TimePoint due = kNever;
    Duration pause{};
  };

  ControlConnection(Fd opened, Endpoint peer, State begin, TimePoint ends)
      : fd(std::move(opened)), remote(peer), state(begin), deadline(ends) {}

  // Over this path alone. False: the record can't reach the peer.
  template <class Record>
  bool send(const Record& record) {
    if constexpr (std::is_same_v<Record, RailNote>) {
      if (!has_room()) return close_path(), false;
    }
    return send(records::bytes_of(record));
  }
  bool send(std::span<const std::byte> bytes);
  // Ends this TCP connection, and tells the peer that no more than this one ends.
  void close_path();
  // Both ends use it, or did until the comm was closed.
  bool is_joined() const {
    return state == State::kOpen || state == State::kLeaving || state == State::kPath;
  }
  // The connection is ready, and the peer can be told something.
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
  // Null: this is not a path of another one.
  bool is_path() const { return owner != nullptr; }
  TimePoint routes_due() const {
    TimePoint out = kNever;
    for (const Route& route : routes) out = std::min(out, route.due);
    return out;
  }

  Fd fd;
  const Endpoint remote;
  State state;
  TimePoint deadline;
  TimePoint waits_until = kNever;  // The limit, however often the peer asks to wait.
  TimePoint dial_due = kNever;     // When to dial next.
  std::size_t dials = 0;           // Dials before the current one.
  Duration dial_pause = kFirstDialPause;
  std::string last_failure;      // Why the previous dial failed.
  TimePoint rails_due = kNever;  // When the connection's recovery has its next step.
  // Closed by this end, or announced by the peer: its end is no sign of death.
  bool is_cut = false;
  RecordReader reader;
  std::shared_ptr<Connection> connection;  // Null before the hello.
  Rail* over = nullptr;                    // The rail with its local address.
  ControlConnection* owner = nullptr;      // The control connection of which this is a path.
  std::vector<ControlConnection*> paths;   // Further paths that are joined.
  std::vector<Route> routes;               // A sender's: of all paths, the first included.
  Cookie cookie{};
  Hello hello;
  Answer answer;

 private:
  bool has_room() const;
};

}  // namespace ztcp::verbs
