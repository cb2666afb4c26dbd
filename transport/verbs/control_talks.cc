// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the control thread does with each connection. All of it under the lock.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>

#include "transport/core/log.h"
#include "transport/core/pending_victim.h"
#include "transport/sockets/advice.h"
#include "transport/verbs/control.h"

namespace ztcp::verbs {
namespace {

constexpr std::size_t kAcceptsAtOnce = 8;
// That have said nothing: of others than the job's, as good as all.
constexpr std::size_t kMostSilent = 256;
constexpr Duration kRest = std::chrono::milliseconds(100);

}  // namespace

void Control::on_listener(Rail& rail, TimePoint now) {
  for (std::size_t i = 0; i < kAcceptsAtOnce; ++i) {
    auto accepted = sockets::accept(rail.listening->fd, settings_.times);
    if (!accepted) return rest(rail, accepted.error(), now);
    if (!*accepted) return;
    make_room();
    const int fd = (*accepted)->fd.get();
    auto talk = std::make_unique<Talk>(std::move((*accepted)->fd), (*accepted)->remote,
                                       Talk::State::kAwaitHello, now + settings_.handshake_timeout);
    talk->over = &rail;
    Talk& added = add_talk(std::move(talk));
    silent_.push_back(&added);
    if (!watch(fd, EPOLLIN | EPOLLRDHUP, {Watched::kTalk, &added})) {
      added.state = Talk::State::kGone;
      continue;
    }
    // A peer's hello comes right behind its connection: it is read before anybody needs the place.
    try {
      on_talk(added, EPOLLIN);
    } catch (const std::bad_alloc&) {
      drop(added);
    }
  }
}

// Of those that have said nothing the oldest goes, of the address that has most of them. A peer
// that is pushed out all the same dials again.
void Control::make_room() {
  std::erase_if(silent_, [](const Talk* talk) { return talk->state != Talk::State::kAwaitHello; });
  if (silent_.size() < kMostSilent) return;
  Talk& oldest = **pending_victim(silent_, [](const Talk* talk) { return &talk->remote.address; });
  ++oldest.over->strangers.pushed_out;
  unwatch(oldest.fd.get());
  sockets::reset(std::move(oldest.fd));
  oldest.state = Talk::State::kGone;
}

// Who waits there stays readable: without a descriptor it would be asked for ever.
void Control::rest(Rail& rail, const Error& error, TimePoint now) {
  rail.ends.failed({}, error.code,
                   fmt::format("accepting connections failed: {} ({}); raise ulimit -n for this "
                               "process",
                               describe(error.code), std::strerror(error.sys_errno)));
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, rail.listening->fd.get(), nullptr);
  resting_.push_back(&rail);
  rest_ends_ = now + kRest;
}

void Control::on_talk(Talk& talk, std::uint32_t events) {
  if (talk.state == Talk::State::kDialling) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    return on_dialled(talk);
  }
  while (talk.fd && talk.state != Talk::State::kGone) {
    const auto room = talk.reader.room();
    const ssize_t got = recv(talk.fd.get(), room.data(), room.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return on_end(talk, {Errc::kPeerClosed, got < 0 ? errno : 0, "the exchange"});
    talk.reader.add(static_cast<std::size_t>(got));
    const Result<bool> complete = talk.reader.is_complete();
    if (!complete) return give_up(talk, complete.error(), "it speaks otherwise");
    if (*complete) on_record(talk);
  }
}

void Control::on_record(Talk& talk) {
  using State = Talk::State;
  const bool is_told = talk.is_joined();
  switch (talk.reader.kind()) {
    case RecordKind::kHello:
      if (talk.state == State::kAwaitHello) return on_hello(talk);
      break;
    case RecordKind::kAnswer:
      if (talk.state == State::kAwaitAnswer) return on_answer(talk);
      break;
    case RecordKind::kWait:
      if (talk.state == State::kAwaitAnswer) return on_wait(talk);
      break;
    case RecordKind::kReady:
      if (talk.state == State::kAwaitReady) return on_ready(talk);
      break;
    case RecordKind::kClose:
      if (!talk.is_path() || is_told || talk.state == State::kAwaitPath)
        return on_close_record(talk);
      break;
    case RecordKind::kStream:
      if (talk.state == State::kAwaitHello) return on_stream(talk);
      break;
    case RecordKind::kPath:
      if (talk.state == State::kAwaitHello || talk.state == State::kAwaitPath) return on_path(talk);
      break;
    case RecordKind::kRail:
      if (is_told) return on_note(talk);
      break;
  }
  give_up(talk, {Errc::kProtocol, 0, "the exchange"}, "a record that is not due");
}

void Control::on_close_record(Talk& path) {
  const Result<CloseRecord> record = path.reader.take<CloseRecord>();
  if (!record) return give_up(path, record.error(), "");
  if (path.state == Talk::State::kAwaitPath)
    return give_up(path, {Errc::kRefused, 0, "the exchange"}, text_of(*record));
  if (record->code == CloseRecord::kThisPath && path.is_joined()) {
    path.is_cut = true;
    return;
  }
  Talk& talk = path.is_path() ? *path.talk : path;
  const bool is_orderly = record->code == CloseRecord::kOrderly;
  const Errc code = !is_orderly && record->code <= static_cast<std::uint8_t>(Errc::kSystem)
                        ? static_cast<Errc>(record->code)
                        : Errc::kPeerClosed;
  if (talk.state == Talk::State::kOpen) {
    talk.connection->hear(is_orderly ? PeerEvent::kClosed : PeerEvent::kGivenUp, code,
                          text_of(*record));
  } else if (talk.state == Talk::State::kLeaving) {
    talk.state = Talk::State::kGone;
  } else {
    give_up(talk, {code == Errc::kPeerClosed ? Errc::kRefused : code, 0, "the exchange"},
            "it says: " + text_of(*record));
  }
}

void Control::with_connection(Talk& talk, const std::function<Status(Connection&)>& ask) {
  if (!talk.is_heard()) return;
  Connection& connection = *talk.connection;
  auto lock = connection.lock();
  Status outcome = ask(connection);
  if (outcome && connection.has_broken()) outcome = connection.lose_broken();
  send_notes(talk);
  if (lock) lock.unlock();
  if (!outcome)
    connection.hear(PeerEvent::kDeviceLost, outcome.error().code, outcome.error().where);
}

// Without memory, too: NCCL's threads end their turns with it.
void Control::send_notes(Talk& talk) noexcept {
  if (talk.connection->has_notes())
    talk.connection->notes().take_new([&](const RailNote& note) {
      if (note.step == RailNote::Step::kAccept && note.facts.is_tcp != 0)
        tickets_.give(note.facts.ticket, talk, note.rail);
      talk.tell(note);
    });
  talk.rails_due = talk.connection->due();
}

// Of one whose comm is closed nothing is to be done about it any more.
void Control::on_note(Talk& path) {
  const Result<RailNote> note = path.reader.take<RailNote>();
  if (!note) return give_up(path, note.error(), "");
  with_connection(path.is_path() ? *path.talk : path,
                  [&](Connection& connection) { return connection.hear(*note, clock_now()); });
}

void Control::on_end(Talk& talk, const Error& error) {
  if (goes_on(talk, error) || dials_again(talk, error)) return;
  give_up(talk, error, talk.state == Talk::State::kOpen ? kDied : "it closed the connection");
}

// The peer hears why, and this end says it, too.
void Control::refuse(Talk& talk, const Error& error, const std::string& why) {
  talk.send_close(static_cast<std::uint8_t>(error.code), why);
  give_up(talk, error, why);
}

void Control::give_up(Talk& talk, const Error& error, const std::string& why) {
  if (talk.is_path()) return lose_path(talk, error);
  if (talk.state == Talk::State::kOpen) {
    talk.is_peer_gone = true;
    talk.connection->hear(PeerEvent::kDied, error.code, why);
    return forget(talk);
  }
  const auto state = std::exchange(talk.state, Talk::State::kGone);
  if (!talk.connection) {  // A port scanner, say.
    if (state == Talk::State::kAwaitHello && error.code == Errc::kProtocol)
      ++(talk.reader.is_of_other_version() ? talk.over->strangers.other_version
                                           : talk.over->strangers.bad_magic);
    return;
  }
  if (state == Talk::State::kLeaving || state == Talk::State::kGone) return;
  Connection& connection = *talk.connection;
  connection.rails().first().ends.failed(
      talk.remote.address, error.code,
      fmt::format("{} {} {} {} failed: {} ({}){}{}",
                  connection.direction() == Direction::kSend ? "connecting to" : "accepting from",
                  to_string(talk.remote),
                  connection.rails().first().device.is_tcp ? "over" : "with queue pairs of",
                  connection.rails().first().device.place(), describe(error.code), error.where,
                  why.empty() ? "" : ": ", why));
  connection.fail(error);
}

void Control::time_out(Talk& talk) {
  try {
    // Of an open one: its sender has not dialled again after a reset.
    if (talk.state == Talk::State::kOpen) {
      talk.deadline = kNever;
      return give_up(talk, {Errc::kPeerClosed, ECONNRESET, "the peer"}, kDied);
    }
    if (talk.state == Talk::State::kAwaitHello) ++talk.over->strangers.timed_out;
    // The receiver may be stopped, and read the hello later.
    if (talk.state == Talk::State::kAwaitPath) talk.close_path();
    give_up(talk, {Errc::kTimedOut, 0, "the exchange"},
            "is the process on that host alive, and may TCP pass to its ports first_port to "
            "last_port?" +
                (talk.last_failure.empty() ? "" : " The last attempt: " + talk.last_failure));
  } catch (const std::bad_alloc&) {
    drop(talk);
  }
}

void Control::read_late(Talk& talk) {
  try {
    on_talk(talk, EPOLLIN);
  } catch (const std::bad_alloc&) {
    drop(talk);
  }
}

// Without memory for new queue pairs, or for a stream, after a while.
void Control::advance(Talk& talk, TimePoint now) {
  talk.rails_due = kNever;
  try {
    with_connection(talk, [&](Connection& connection) { return connection.advance(now); });
  } catch (const std::bad_alloc&) {
    talk.rails_due = now + kRest;
  }
}

void Control::warn_of_strangers(TimePoint now) {
  for (const auto& rail : rails_) {
    if (!rail->listening || !rail->stranger_log.is_due(now)) continue;
    const auto text = rail->stranger_log.look(
        now, rail->strangers.totals(),
        sockets::ports_text(rail->device.exchange, rail->listening->endpoint));
    if (text) log::warn("{}: {}", rail->device.name, *text);
  }
}

void Control::sweep(TimePoint now) {
  warn_of_strangers(now);
  tell_to_wait(now);
  if (!resting_.empty() && rest_ends_ <= now) {
    for (Rail* const rail : std::exchange(resting_, {})) {
      if (watch(rail->listening->fd.get(), EPOLLIN, {Watched::kListener, rail})) continue;
      resting_.push_back(rail);
      rest_ends_ = now + kRest;
    }
  }
  for (auto it = talks_.begin(); it != talks_.end();) {
    Talk& talk = **it;
    if (talk.dial_due <= now) dial_again(talk, now);
    if (talk.rails_due <= now) advance(talk, now);
    if (talk.routes_due() <= now) dial_paths(talk, now);
    // What has come counts, though this thread was kept from reading it.
    if (talk.deadline <= now && talk.fd) read_late(talk);
    if (talk.deadline <= now) {
      if (talk.state == Talk::State::kLeaving)
        talk.state = Talk::State::kGone;
      else
        time_out(talk);
    }
    if (talk.state != Talk::State::kGone) {
      ++it;
      continue;
    }
    forget(talk);
    forget_paths(talk);
    std::erase(silent_, &talk);
    std::erase(hellos_, &talk);
    tickets_.forget(talk);
    if (talk.connection) talk_of_.erase(talk.connection.get());
    it = talks_.erase(it);
  }
}

}  // namespace ztcp::verbs
