// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The paths of a control connection. The ends of a connection over several rails send their notes
// over all paths (exchange.h), so that the link of one path may fail. The sender dials the paths:
// one beside the first, over the last rail, which shares least with it; when a path has ended, it
// dials all the others, and that one again. All of it under the lock.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <sys/epoll.h>
#include <utility>

#include <fmt/format.h>

#include "core/gid.h"
#include "core/log.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {
namespace {

// Until then the receiver has learnt that the connection is ready.
constexpr Duration kFirstDial = std::chrono::milliseconds(20);
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(8);
// A living sender has dialled again by then, after a reset.
constexpr Duration kRedialGrace = std::chrono::seconds(3);
// Per control connection. A path that has ended unnoticed has its successor beside it.
constexpr std::size_t kMostPaths = std::size_t{2} * kMaxRails;

// A path has ended, or was not established: dials it and all other missing paths, each after its
// pause.
void reroute(ControlConnection& control, ControlConnection::Route& ended) {
  const TimePoint now = clock_now();
  ended.path = nullptr;
  for (ControlConnection::Route& route : control.routes)
    if (route.path == nullptr) route.due = std::min(route.due, now + route.pause);
  ended.pause = std::min(2 * ended.pause, kLongestPause);
}
// Does nothing at a receiver, which has no routes.
void reroute(ControlConnection& control, const ControlConnection& ended) {
  for (ControlConnection::Route& route : control.routes)
    if (route.path == &ended) reroute(control, route);
}

bool is_open(const ControlConnection& control) {
  return control.state == ControlConnection::State::kOpen ||
         control.state == ControlConnection::State::kLeaving;
}

// The sender dials at once; a receiver gives up a sender that does not dial.
void expect_redial(ControlConnection& control) {
  const TimePoint now = clock_now();
  for (ControlConnection::Route& route : control.routes)
    route.due = std::min(route.due, now + kFirstDial);
  if (control.routes.empty()) control.deadline = now + kRedialGrace;
}

std::string words_of(const Error& error) {
  return error.sys_errno == 0 ? describe(error.code) : std::strerror(error.sys_errno);
}

// A path that the peer closed is not logged: if the peer has ended, the other paths show it.
void say_ended(const ControlConnection& control, const ControlConnection& path,
               const Error& error) {
  const bool is_closed =
      error.code == Errc::kPeerClosed && (error.sys_errno == 0 || error.sys_errno == ECONNRESET);
  if (is_closed || !control.is_heard() || control.connection->peer_status().has_ended()) return;
  if (!path.over->untold_over.add(control.remote.address)) return;
  const auto others = control.paths.size() + (control.fd ? 1 : 0);
  log::warn(
      "{}: no path over {} to {} for notes about rails: {}; {} other{}; is that link up, "
      "and may TCP pass to its ports first_port to last_port there?",
      control.connection->rails().name, path.over->device.place(), to_string(control.remote),
      words_of(error), others, others == 1 ? " serves" : "s serve");
}

}  // namespace

void ControlThread::begin_paths(ControlConnection& control) {
  const Connection& connection = *control.connection;
  if (connection.direction() != Direction::kSend || control.answer.facts.ticket == Ticket{}) return;
  control.routes.push_back({control.over, control.remote, &control, kNever, kFirstPause});
  if (connection.rail_states().size() < 2) return;
  for (std::size_t i = 0; i < connection.rail_states().size(); ++i) {
    Rail& rail = *connection.rail_states()[i].rail;
    const RailFacts& theirs = connection.peer_facts().on[i];
    if (theirs.port == 0) continue;
    const Endpoint remote{address_of(theirs.exchange), theirs.port};
    const IpAddress& own = rail.device.exchange.address;
    const bool is_known = std::any_of(control.routes.begin(), control.routes.end(),
                                      [&](const ControlConnection::Route& route) {
                                        return route.remote.address == remote.address &&
                                               route.over->device.exchange.address == own;
                                      });
    if (!is_known && own.is_v4() == remote.address.is_v4())
      control.routes.push_back({&rail, remote, nullptr, kNever, kFirstPause});
  }
  if (control.routes.size() == 1) return;
  control.routes.back().due = clock_now() + kFirstDial;
}

void ControlThread::dial_paths(ControlConnection& control, TimePoint now) {
  for (ControlConnection::Route& route : control.routes) {
    if (route.due > now) continue;
    route.due = kNever;
    if (!control.is_heard()) continue;
    try {
      dial_path(control, route, now);
    } catch (const std::bad_alloc&) {
      reroute(control, route);
    }
  }
}

void ControlThread::dial_path(ControlConnection& control, ControlConnection::Route& route,
                              TimePoint now) {
  auto path = std::make_unique<ControlConnection>(
      Fd(), route.remote, ControlConnection::State::kDialling, now + settings_.handshake_timeout);
  path->over = route.over;
  path->owner = &control;
  auto fd = sockets::dial(route.over->device.exchange, settings_.times, route.remote);
  if (!fd) {
    say_ended(control, *path, fd.error());
    return reroute(control, route);
  }
  path->fd = std::move(*fd);
  ControlConnection& added = add_control(std::move(path));
  route.path = &added;
  if (!watch(added.fd.get(), EPOLLOUT | EPOLLIN | EPOLLRDHUP, {Watched::kControl, &added}))
    lose_path(added, {Errc::kSystem, errno, "epoll_ctl"});
}

// The path is the sender's, and connected.
void ControlThread::greet_path(ControlConnection& path) {
  path.state = ControlConnection::State::kAwaitPath;
  with_recovery(*path.owner, [&](Recovery& recovery) {
    path.send(make_path_hello(path.owner->answer.facts.ticket, recovery.notes().heard()));
    return Status();
  });
}

// The receiver's reply on a path that this end dialled, or a sender's hello on a new one.
void ControlThread::on_path(ControlConnection& path) {
  const Result<PathHello> hello = path.reader.take<PathHello>();
  if (!hello) return give_up(path, hello.error(), "");
  if (path.state == ControlConnection::State::kAwaitPath) return join_path(path, hello->heard);
  const auto found = control_of_ticket_.find(hello->ticket);
  // Told so, the sender of an ended connection does not wait in vain.
  if (found == control_of_ticket_.end()) {
    ++path.over->strangers.unknown_cookie;
    path.send_close(static_cast<std::uint8_t>(Errc::kRefused), "it has ended the connection");
  }
  if (found == control_of_ticket_.end() ||
      found->second->state != ControlConnection::State::kOpen ||
      found->second->paths.size() >= kMostPaths) {
    path.state = ControlConnection::State::kGone;
    return;
  }
  path.owner = found->second;
  with_recovery(*path.owner, [&](Recovery& recovery) {
    path.send(make_path_hello({}, recovery.notes().heard()));
    return Status();
  });
  join_path(path, hello->heard);
}

void ControlThread::join_path(ControlConnection& path, std::uint32_t heard) {
  ControlConnection& control = *path.owner;
  control.paths.push_back(&path);
  path.state = ControlConnection::State::kPath;
  path.deadline = kNever;
  if (control.state == ControlConnection::State::kOpen) control.deadline = kNever;
  control.connection->peer_status().set_silent(false);
  for (ControlConnection::Route& route : control.routes)
    if (route.path == &path) route.pause = kFirstPause;
  with_recovery(control, [&](Recovery& recovery) {
    return recovery.notes().repeat(heard, [&](const RailNote& note) { path.send(note); });
  });
  if (path.over->untold_over.remove(control.remote.address))
    log::info("{}: the path over {} to {} is back", control.connection->rails().name,
              path.over->device.place(), to_string(control.remote));
}

void ControlThread::lose_path(ControlConnection& path, const Error& error) {
  ControlConnection& control = *path.owner;
  PathEnd ended = end_of(path, error);
  detach_path(path);
  ended.is_last = is_open(control) && !control.fd && control.paths.empty();
  const PathVerdict verdict = judge(ended);
  if (verdict == PathVerdict::kDied) return give_up(control, error, kDied);
  go_on(control, path, error, verdict);
}

PathEnd ControlThread::end_of(const ControlConnection& path, const Error& error) const {
  const ControlConnection& control = path.is_path() ? *path.owner : path;
  return {.error = error,
          .is_joined = path.is_joined(),
          .is_cut = path.is_cut,
          .silence = sockets::silence(path.fd),
          .user_timeout = settings_.times.user_timeout,
          .may_redial = control.state == ControlConnection::State::kOpen &&
                        control.answer.facts.ticket != Ticket{}};
}

// The connection goes on over the other paths, or without any until one is dialled again.
void ControlThread::go_on(ControlConnection& control, const ControlConnection& ended,
                          const Error& error, PathVerdict verdict) {
  if (verdict == PathVerdict::kOthersServe) return say_ended(control, ended, error);
  if (verdict == PathVerdict::kAwaitRedial) expect_redial(control);
  fall_silent(control, ended, error);
}

// The sender dials again; meanwhile only the peer's NIC shows whether the peer is alive.
void ControlThread::fall_silent(ControlConnection& control, const ControlConnection& path,
                                const Error& error) {
  if (control.state != ControlConnection::State::kOpen ||
      control.connection->peer_status().has_ended())
    return;
  control.connection->peer_status().set_silent(true);
  if (!path.over->untold_over.add(control.remote.address)) return;
  log::warn(
      "{}: TCP to {} over {} is silent ({}): queue pairs go on, and their ack_timeout "
      "(NCCL_IB_TIMEOUT) tells whether the peer is there; it is dialled again until it answers; is "
      "the network of {} up?",
      control.connection->rails().name, to_string(control.remote),
      path.over->device.exchange.interface, words_of(error),
      to_string(path.over->device.exchange.address));
}

void ControlThread::detach_path(ControlConnection& path) {
  path.state = ControlConnection::State::kGone;
  std::erase(path.owner->paths, &path);
  reroute(*path.owner, path);
}

bool ControlThread::goes_on(ControlConnection& control, const Error& error) {
  if (control.is_path() || !is_open(control)) return false;
  PathEnd ended = end_of(control, error);
  ended.is_last = control.paths.empty();
  if (ended.is_last && control.state != ControlConnection::State::kOpen) return false;
  const PathVerdict verdict = judge(ended);
  if (verdict == PathVerdict::kDied) return false;
  forget(control);
  reroute(control, control);
  go_on(control, control, error, verdict);
  return true;
}

// Paths end with their control connection.
void ControlThread::forget_paths(ControlConnection& control) {
  const auto end = [&](ControlConnection* path) {
    if (path == nullptr || path == &control) return;
    path->owner = nullptr;
    path->state = ControlConnection::State::kGone;
  };
  for (ControlConnection* const path : control.paths) end(path);
  for (const ControlConnection::Route& route : control.routes) end(route.path);
  control.paths.clear();
  control.routes.clear();
  const auto found = control_of_ticket_.find(control.answer.facts.ticket);
  if (found != control_of_ticket_.end() && found->second == &control)
    control_of_ticket_.erase(found);
}

}  // namespace ztcp::verbs
