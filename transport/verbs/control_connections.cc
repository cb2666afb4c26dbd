// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the control thread serves each control connection. All of it under the lock.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"
#include "core/pending_victim.h"
#include "transport/sockets/kernel/advice.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {
namespace {

constexpr std::size_t kAcceptsAtOnce = 8;
// Connections without a hello yet. Almost all of them are not the job's.
constexpr std::size_t kMostSilent = 256;
constexpr Duration kRest = std::chrono::milliseconds(100);

}  // namespace

void ControlThread::on_listener(Rail& rail, TimePoint now) {
  for (std::size_t i = 0; i < kAcceptsAtOnce; ++i) {
    auto accepted = sockets::accept(rail.listening->fd, settings_.times, rail.device.exchange.dscp);
    if (!accepted) return rest(rail, accepted.error(), now);
    if (!*accepted) return;
    make_room();
    const int fd = (*accepted)->fd.get();
    auto control = std::make_unique<ControlConnection>(
        std::move((*accepted)->fd), (*accepted)->remote, ControlConnection::State::kAwaitHello,
        now + settings_.handshake_timeout);
    control->over = &rail;
    ControlConnection& added = add_control(std::move(control));
    silent_.push_back(&added);
    if (!watch(fd, EPOLLIN | EPOLLRDHUP, {Watched::kControl, &added})) {
      added.state = ControlConnection::State::kGone;
      continue;
    }
    // A peer's hello follows its connection at once: read it before a newer connection needs the
    // place.
    try {
      on_readable(added, EPOLLIN);
    } catch (const std::bad_alloc&) {
      drop(added);
    }
  }
}

// Makes room for one more connection without a hello: drops the oldest one, from the address that
// has most of them. If that was a peer's, the peer dials again.
void ControlThread::make_room() {
  std::erase_if(silent_, [](const ControlConnection* control) {
    return control->state != ControlConnection::State::kAwaitHello;
  });
  if (silent_.size() < kMostSilent) return;
  ControlConnection& oldest = **pending_victim(
      silent_, [](const ControlConnection* control) { return &control->remote.address; });
  ++oldest.over->strangers.pushed_out;
  unwatch(oldest.fd.get());
  sockets::reset(std::move(oldest.fd));
  oldest.state = ControlConnection::State::kGone;
}

// The listener stays readable while connections wait: without a free descriptor epoll would return
// at once, for ever.
void ControlThread::rest(Rail& rail, const Error& error, TimePoint now) {
  rail.ends.failed({}, error.code,
                   fmt::format("accepting connections failed: {} ({}); raise ulimit -n for this "
                               "process",
                               describe(error.code), std::strerror(error.sys_errno)));
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, rail.listening->fd.get(), nullptr);
  resting_.push_back(&rail);
  rest_ends_ = now + kRest;
}

void ControlThread::on_readable(ControlConnection& control, std::uint32_t events) {
  if (control.state == ControlConnection::State::kDialling) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    return on_dialled(control);
  }
  while (control.fd && control.state != ControlConnection::State::kGone) {
    const auto room = control.reader.room();
    const ssize_t got = recv(control.fd.get(), room.data(), room.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return on_end(control, {Errc::kPeerClosed, got < 0 ? errno : 0, "the exchange"});
    control.reader.add(static_cast<std::size_t>(got));
    const Result<bool> complete = control.reader.is_complete();
    if (!complete) return give_up(control, complete.error(), "it speaks otherwise");
    if (*complete) on_record(control);
  }
}

void ControlThread::on_record(ControlConnection& control) {
  using State = ControlConnection::State;
  const bool is_told = control.is_joined();
  switch (control.reader.kind()) {
    case RecordKind::kHello:
      if (control.state == State::kAwaitHello) return on_hello(control);
      break;
    case RecordKind::kAnswer:
      if (control.state == State::kAwaitAnswer) return on_answer(control);
      break;
    case RecordKind::kWait:
      if (control.state == State::kAwaitAnswer) return on_wait(control);
      break;
    case RecordKind::kReady:
      if (control.state == State::kAwaitReady) return on_ready(control);
      break;
    case RecordKind::kClose:
      if (!control.is_path() || is_told || control.state == State::kAwaitPath)
        return on_close_record(control);
      break;
    case RecordKind::kStream:
      if (control.state == State::kAwaitHello) return on_stream(control);
      break;
    case RecordKind::kPath:
      if (control.state == State::kAwaitHello || control.state == State::kAwaitPath)
        return on_path(control);
      break;
    case RecordKind::kRail:
      if (is_told) return on_note(control);
      break;
  }
  give_up(control, {Errc::kProtocol, 0, "the exchange"}, "a record that is not due");
}

void ControlThread::on_close_record(ControlConnection& path) {
  const Result<CloseRecord> record = path.reader.take<CloseRecord>();
  if (!record) return give_up(path, record.error(), "");
  if (path.state == ControlConnection::State::kAwaitPath)
    return give_up(path, {Errc::kRefused, 0, "the exchange"}, text_of(*record));
  if (record->code == CloseRecord::kThisPath && path.is_joined()) {
    path.is_cut = true;
    return;
  }
  ControlConnection& control = path.is_path() ? *path.owner : path;
  const bool is_orderly = record->code == CloseRecord::kOrderly;
  const Errc code = !is_orderly && record->code <= static_cast<std::uint8_t>(Errc::kSystem)
                        ? static_cast<Errc>(record->code)
                        : Errc::kPeerClosed;
  if (control.state == ControlConnection::State::kOpen) {
    control.connection->peer_status().report(is_orderly ? PeerEvent::kClosed : PeerEvent::kGivenUp,
                                             code, text_of(*record));
  } else if (control.state == ControlConnection::State::kLeaving) {
    control.state = ControlConnection::State::kGone;
  } else {
    give_up(control, {code == Errc::kPeerClosed ? Errc::kRefused : code, 0, "the exchange"},
            "it says: " + text_of(*record));
  }
}

void ControlThread::with_recovery(ControlConnection& control,
                                  const std::function<Status(Recovery&)>& ask) {
  if (!control.is_heard()) return;
  Connection& connection = *control.connection;
  auto lock = connection.lock();
  Status outcome = ask(connection.recovery());
  if (outcome && connection.traffic().has_broken()) outcome = connection.recovery().lose_broken();
  send_notes(control);
  if (lock) lock.unlock();
  if (!outcome)
    connection.peer_status().report(PeerEvent::kDeviceLost, outcome.error().code,
                                    outcome.error().where);
}

// Must not need memory: NCCL's threads call it at the end of each call.
void ControlThread::send_notes(ControlConnection& control) noexcept {
  if (control.connection->recovery().notes().has_new())
    control.connection->recovery().notes().take_new([&](const RailNote& note) {
      if (note.step == RailNote::Step::kAccept && note.facts.is_tcp != 0)
        tickets_.give(note.facts.ticket, control, note.rail);
      control.tell(note);
    });
  control.rails_due = control.connection->recovery().due();
}

// Once the comm is closed, notes are ignored.
void ControlThread::on_note(ControlConnection& path) {
  const Result<RailNote> note = path.reader.take<RailNote>();
  if (!note) return give_up(path, note.error(), "");
  with_recovery(path.is_path() ? *path.owner : path,
                [&](Recovery& recovery) { return recovery.hear(*note, clock_now()); });
}

void ControlThread::on_end(ControlConnection& control, const Error& error) {
  if (goes_on(control, error) || dials_again(control, error)) return;
  give_up(control, error,
          control.state == ControlConnection::State::kOpen ? kDied : "it closed the connection");
}

// Tells the peer the reason, and logs it here.
void ControlThread::refuse(ControlConnection& control, const Error& error, const std::string& why) {
  control.send_close(static_cast<std::uint8_t>(error.code), why);
  give_up(control, error, why);
}

void ControlThread::give_up(ControlConnection& control, const Error& error,
                            const std::string& why) {
  if (control.is_path()) return lose_path(control, error);
  if (control.state == ControlConnection::State::kOpen) {
    control.connection->peer_status().report_unreachable();
    control.connection->peer_status().report(PeerEvent::kDied, error.code, why);
    return forget(control);
  }
  const auto state = std::exchange(control.state, ControlConnection::State::kGone);
  if (!control.connection) {  // For example a port scanner.
    if (state == ControlConnection::State::kAwaitHello && error.code == Errc::kProtocol)
      ++(control.reader.is_of_other_version() ? control.over->strangers.other_version
                                              : control.over->strangers.bad_magic);
    return;
  }
  if (state == ControlConnection::State::kLeaving || state == ControlConnection::State::kGone)
    return;
  Connection& connection = *control.connection;
  connection.rails().first().ends.failed(
      control.remote.address, error.code,
      fmt::format("{} {} {} {} failed: {} ({}){}{}",
                  connection.direction() == Direction::kSend ? "connecting to" : "accepting from",
                  to_string(control.remote),
                  connection.rails().first().device.is_tcp ? "over" : "with queue pairs of",
                  connection.rails().first().device.place(), describe(error.code), error.where,
                  why.empty() ? "" : ": ", why));
  connection.fail(error);
}

void ControlThread::time_out(ControlConnection& control) {
  try {
    // The sender of an open connection has not dialled again after a reset.
    if (control.state == ControlConnection::State::kOpen) {
      control.deadline = kNever;
      return give_up(control, {Errc::kPeerClosed, ECONNRESET, "the peer"}, kDied);
    }
    if (control.state == ControlConnection::State::kAwaitHello) ++control.over->strangers.timed_out;
    // The receiver may be stopped, and read the hello much later.
    if (control.state == ControlConnection::State::kAwaitPath) control.close_path();
    give_up(control, {Errc::kTimedOut, 0, "the exchange"},
            "is the process on that host alive, and may TCP pass to its ports first_port to "
            "last_port?" +
                (control.last_failure.empty() ? "" : " The last attempt: " + control.last_failure));
  } catch (const std::bad_alloc&) {
    drop(control);
  }
}

void ControlThread::read_late(ControlConnection& control) {
  try {
    on_readable(control, EPOLLIN);
  } catch (const std::bad_alloc&) {
    drop(control);
  }
}

// If there is no memory for new queue pairs or a stream, it is tried again after a pause.
void ControlThread::advance(ControlConnection& control, TimePoint now) {
  control.rails_due = kNever;
  try {
    with_recovery(control, [&](Recovery& recovery) { return recovery.advance(now); });
  } catch (const std::bad_alloc&) {
    control.rails_due = now + kRest;
  }
}

void ControlThread::warn_of_strangers(TimePoint now) {
  for (const auto& rail : rails_) {
    if (!rail->listening || !rail->stranger_log.is_due(now)) continue;
    const auto text = rail->stranger_log.check(
        now, stats::totals_of(msg::kStrangerCounters, rail->strangers),
        sockets::ports_text(rail->device.exchange, rail->listening->endpoint));
    if (text) log::warn("{}: {}", rail->device.name, *text);
  }
}

void ControlThread::sweep(TimePoint now) {
  if (pages_due_ <= now) refresh_pages(now);
  warn_of_strangers(now);
  tell_to_wait(now);
  if (!resting_.empty() && rest_ends_ <= now) {
    for (Rail* const rail : std::exchange(resting_, {})) {
      if (watch(rail->listening->fd.get(), EPOLLIN, {Watched::kListener, rail})) continue;
      resting_.push_back(rail);
      rest_ends_ = now + kRest;
    }
  }
  for (auto it = controls_.begin(); it != controls_.end();) {
    ControlConnection& control = **it;
    if (control.dial_due <= now) dial_again(control, now);
    if (control.rails_due <= now) advance(control, now);
    if (control.routes_due() <= now) dial_paths(control, now);
    // Records that arrived in time count, even if this thread was late to read them.
    if (control.deadline <= now && control.fd) read_late(control);
    if (control.deadline <= now) {
      if (control.state == ControlConnection::State::kLeaving)
        control.state = ControlConnection::State::kGone;
      else
        time_out(control);
    }
    if (control.state != ControlConnection::State::kGone) {
      ++it;
      continue;
    }
    forget(control);
    forget_paths(control);
    std::erase(silent_, &control);
    std::erase(hellos_, &control);
    tickets_.forget(control);
    if (control.connection) {
      retire_report(control, now);
      control_of_.erase(control.connection.get());
    }
    it = controls_.erase(it);
  }
}

}  // namespace ztcp::verbs
