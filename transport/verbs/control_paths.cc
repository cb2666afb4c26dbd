// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The paths of a talk: what the ends of a connection over several rails tell each other goes over
// all of them (exchange.h), so that a link that carries one may fail. The sender dials them: one
// beside the first, over the last of the rails, which has least in common with it; and when one has
// ended, all others, and that one again. All of it under the lock.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <sys/epoll.h>
#include <utility>

#include <fmt/format.h>

#include "transport/core/gid.h"
#include "transport/core/log.h"
#include "transport/verbs/control.h"

namespace ztcp::verbs {
namespace {

// The receiver may not know yet that the connection is ready.
constexpr Duration kFirstDial = std::chrono::milliseconds(20);
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(8);
// So long after a reset a living sender has dialled again.
constexpr Duration kRedialGrace = std::chrono::seconds(3);
// Of a talk: one that has ended unnoticed has its successor beside it.
constexpr std::size_t kMostPaths = std::size_t{2} * kMaxRails;

// A path has ended, or did not come about: it is dialled again, and all that there are not yet.
void reroute(Talk& talk, Talk::Route& ended) {
  const TimePoint now = clock_now();
  ended.path = nullptr;
  for (Talk::Route& route : talk.routes)
    if (route.path == nullptr) route.due = std::min(route.due, now + route.pause);
  ended.pause = std::min(2 * ended.pause, kLongestPause);
}
// A receiver has no routes.
void reroute(Talk& talk, const Talk& ended) {
  for (Talk::Route& route : talk.routes)
    if (route.path == &ended) reroute(talk, route);
}

bool is_open(const Talk& talk) {
  return talk.state == Talk::State::kOpen || talk.state == Talk::State::kLeaving;
}

// The kernel of a peer whose process ended with bytes unread resets a path, and so does that of a
// living one which had no answer for the user timeout: packets are lost in one direction alone, or
// its host is overloaded. Or either host's administrator destroys it (ss -K). The redial tells
// them apart: nobody listens for a dead peer, and a living sender dials again.
bool is_reset(const Talk& talk, const Error& error) {
  return error.code == Errc::kPeerClosed &&
         (error.sys_errno == ECONNRESET || error.sys_errno == ECONNABORTED) &&
         talk.state == Talk::State::kOpen && talk.answer.facts.ticket != Ticket{};
}

// A sender dials at once, a receiver gives up a sender that does not.
void expect_redial(Talk& talk) {
  const TimePoint now = clock_now();
  for (Talk::Route& route : talk.routes) route.due = std::min(route.due, now + kFirstDial);
  if (talk.routes.empty()) talk.deadline = now + kRedialGrace;
}

std::string words_of(const Error& error) {
  return error.sys_errno == 0 ? describe(error.code) : std::strerror(error.sys_errno);
}

// But of a peer that closes it: if it has ended, the others tell.
void say_ended(const Talk& talk, const Talk& path, const Error& error) {
  const bool is_closed =
      error.code == Errc::kPeerClosed && (error.sys_errno == 0 || error.sys_errno == ECONNRESET);
  if (is_closed || !talk.is_heard() || talk.connection->has_peer_event()) return;
  if (!path.over->untold_over.add(talk.remote.address)) return;
  const auto others = talk.paths.size() + (talk.fd ? 1 : 0);
  log::warn(
      "{}: no path over {} to {} for what the ends tell each other of rails: {}; {} other{}; is "
      "that "
      "link up, and may TCP pass to its ports first_port to last_port there?",
      talk.connection->rails().name, path.over->device.place(), to_string(talk.remote),
      words_of(error), others, others == 1 ? " serves" : "s serve");
}

}  // namespace

void Control::begin_paths(Talk& talk) {
  const Connection& connection = *talk.connection;
  if (connection.direction() != Direction::kSend || talk.answer.facts.ticket == Ticket{}) return;
  talk.routes.push_back({talk.over, talk.remote, &talk, kNever, kFirstPause});
  if (connection.rail_states().size() < 2) return;
  for (std::size_t i = 0; i < connection.rail_states().size(); ++i) {
    Rail& rail = *connection.rail_states()[i].rail;
    const RailFacts& theirs = connection.peer_facts().on[i];
    if (theirs.port == 0) continue;
    const Endpoint remote{address_of(theirs.exchange), theirs.port};
    const IpAddress& own = rail.device.exchange.address;
    const bool is_known =
        std::any_of(talk.routes.begin(), talk.routes.end(), [&](const Talk::Route& route) {
          return route.remote.address == remote.address &&
                 route.over->device.exchange.address == own;
        });
    if (!is_known && own.is_v4() == remote.address.is_v4())
      talk.routes.push_back({&rail, remote, nullptr, kNever, kFirstPause});
  }
  if (talk.routes.size() == 1) return;
  talk.routes.back().due = clock_now() + kFirstDial;
}

void Control::dial_paths(Talk& talk, TimePoint now) {
  for (Talk::Route& route : talk.routes) {
    if (route.due > now) continue;
    route.due = kNever;
    if (!talk.is_heard()) continue;
    try {
      dial_path(talk, route, now);
    } catch (const std::bad_alloc&) {
      reroute(talk, route);
    }
  }
}

void Control::dial_path(Talk& talk, Talk::Route& route, TimePoint now) {
  auto path = std::make_unique<Talk>(link::Fd(), route.remote, Talk::State::kDialling,
                                     now + settings_.handshake_timeout);
  path->over = route.over;
  path->talk = &talk;
  auto fd = sockets::dial(route.over->device.exchange, settings_.times, route.remote);
  if (!fd) {
    say_ended(talk, *path, fd.error());
    return reroute(talk, route);
  }
  path->fd = std::move(*fd);
  Talk& added = add_talk(std::move(path));
  route.path = &added;
  if (!watch(added.fd.get(), EPOLLOUT | EPOLLIN | EPOLLRDHUP, {Watched::kTalk, &added}))
    lose_path(added, {Errc::kSystem, errno, "epoll_ctl"});
}

// The sender's, which is connected.
void Control::greet_path(Talk& path) {
  path.state = Talk::State::kAwaitPath;
  with_connection(*path.talk, [&](Connection& connection) {
    path.send(make_path_hello(path.talk->answer.facts.ticket, connection.notes().heard()));
    return Status();
  });
}

// A sender's, which the receiver knows; or a new one of a receiver's.
void Control::on_path(Talk& path) {
  const Result<PathHello> hello = path.reader.take<PathHello>();
  if (!hello) return give_up(path, hello.error(), "");
  if (path.state == Talk::State::kAwaitPath) return join_path(path, hello->heard);
  const auto found = talk_of_ticket_.find(hello->ticket);
  // A sender whose connection is no more waits for nothing then.
  if (found == talk_of_ticket_.end()) {
    ++path.over->strangers.unknown_cookie;
    path.send_close(static_cast<std::uint8_t>(Errc::kRefused), "it has ended the connection");
  }
  if (found == talk_of_ticket_.end() || found->second->state != Talk::State::kOpen ||
      found->second->paths.size() >= kMostPaths) {
    path.state = Talk::State::kGone;
    return;
  }
  path.talk = found->second;
  with_connection(*path.talk, [&](Connection& connection) {
    path.send(make_path_hello({}, connection.notes().heard()));
    return Status();
  });
  join_path(path, hello->heard);
}

void Control::join_path(Talk& path, std::uint32_t heard) {
  Talk& talk = *path.talk;
  talk.paths.push_back(&path);
  path.state = Talk::State::kPath;
  path.deadline = kNever;
  if (talk.state == Talk::State::kOpen) talk.deadline = kNever;
  talk.connection->set_silent(false);
  for (Talk::Route& route : talk.routes)
    if (route.path == &path) route.pause = kFirstPause;
  with_connection(talk, [&](Connection& connection) {
    return connection.notes().repeat(heard, [&](const RailNote& note) { path.send(note); });
  });
  if (path.over->untold_over.remove(talk.remote.address))
    log::info("{}: the path over {} to {} is back", talk.connection->rails().name,
              path.over->device.place(), to_string(talk.remote));
}

void Control::lose_path(Talk& path, const Error& error) {
  Talk& talk = *path.talk;
  const bool is_end = is_death(path, error);
  const bool is_joined = path.state == Talk::State::kPath;
  detach_path(path);
  const bool is_last = is_open(talk) && !talk.fd && talk.paths.empty();
  const bool is_redialled = is_last && is_end && is_joined && is_reset(talk, error);
  if (is_redialled) expect_redial(talk);
  if (is_last && is_end && !is_redialled)
    give_up(talk, error, kDied);
  else if (is_last)
    fall_silent(talk, path, error);
  else
    say_ended(talk, path, error);
}

// What ends a path and is the peer's word, or its kernel's: it has closed, or nobody listens where
// it did. Silence is nobody's word; nor is the end of one that is not joined, which a listener with
// many strangers pushes out.
bool Control::is_death(const Talk& path, const Error& error) const {
  const bool is_joining =
      path.state == Talk::State::kDialling || path.state == Talk::State::kAwaitPath;
  if (error.code == Errc::kRefused || error.code == Errc::kProtocol) return true;
  if (error.code != Errc::kPeerClosed || is_joining || path.is_cut) return false;
  if (error.sys_errno == 0) return true;
  // A kernel that gave a silent connection up, after the user timeout, answers so, too, when it is
  // heard again.
  return sockets::silence(path.fd) < settings_.times.user_timeout * 3 / 4;
}

// The sender dials again; meanwhile the fabric alone tells whether the peer is there.
void Control::fall_silent(Talk& talk, const Talk& path, const Error& error) {
  if (talk.state != Talk::State::kOpen || talk.connection->has_peer_event()) return;
  talk.connection->set_silent(true);
  if (!path.over->untold_over.add(talk.remote.address)) return;
  log::warn(
      "{}: TCP to {} over {} is silent ({}): queue pairs go on, and their ack_timeout "
      "(NCCL_IB_TIMEOUT) tells whether the peer is there; it is dialled again until it answers; is "
      "the network of {} up?",
      talk.connection->rails().name, to_string(talk.remote), path.over->device.exchange.interface,
      words_of(error), to_string(path.over->device.exchange.address));
}

void Control::detach_path(Talk& path) {
  path.state = Talk::State::kGone;
  std::erase(path.talk->paths, &path);
  reroute(*path.talk, path);
}

bool Control::goes_on(Talk& talk, const Error& error) {
  if (talk.is_path() || !is_open(talk)) return false;
  const bool is_last = talk.paths.empty();
  const bool is_end = is_last && (talk.state != Talk::State::kOpen || is_death(talk, error));
  if (is_end && !is_reset(talk, error)) return false;
  forget(talk);
  reroute(talk, talk);
  if (is_end) expect_redial(talk);
  is_last ? fall_silent(talk, talk, error) : say_ended(talk, talk, error);
  return true;
}

// They end with their talk.
void Control::forget_paths(Talk& talk) {
  const auto end = [&](Talk* path) {
    if (path == nullptr || path == &talk) return;
    path->talk = nullptr;
    path->state = Talk::State::kGone;
  };
  for (Talk* const path : talk.paths) end(path);
  for (const Talk::Route& route : talk.routes) end(route.path);
  talk.paths.clear();
  talk.routes.clear();
  const auto found = talk_of_ticket_.find(talk.answer.facts.ticket);
  if (found != talk_of_ticket_.end() && found->second == &talk) talk_of_ticket_.erase(found);
}

}  // namespace ztcp::verbs
