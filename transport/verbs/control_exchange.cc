// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What two ends agree upon before their connection is ready (exchange.h). All of it under the lock.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "transport/verbs/control.h"

namespace ztcp::verbs {

void Control::on_hello(Talk& talk) {
  const Result<Hello> hello = talk.reader.take<Hello>();
  if (!hello) return give_up(talk, hello.error(), "");
  const auto listener = listeners_.find(hello->cookie);
  // From a port scanner, or from a rank that has given up.
  if (listener == listeners_.end()) {
    ++talk.over->strangers.unknown_cookie;
    talk.send_close(static_cast<std::uint8_t>(Errc::kRefused), "nobody listens for it any more");
    talk.state = Talk::State::kGone;
    return;
  }
  talk.hello = *hello;
  talk.cookie = hello->cookie;
  talk.state = Talk::State::kQueued;
  talk.deadline = kNever;
  hellos_.push_back(&talk);
}

// However many come at once: each waits as long as it hears that those before it are served.
void Control::tell_to_wait(TimePoint now) {
  if (hellos_.empty() || now < wait_due_) return;
  wait_due_ = now + std::min<Duration>(std::chrono::seconds(1), settings_.connect_timeout / 4);
  for (Talk* const talk : hellos_) talk->send(make_wait());
}

void Control::answer_next(std::unique_lock<std::mutex>& lock) {
  Talk& talk = *hellos_.front();
  hellos_.pop_front();
  if (talk.state != Talk::State::kQueued) return;
  const auto listener = listeners_.find(talk.cookie);
  if (listener == listeners_.end()) {
    talk.send_close(static_cast<std::uint8_t>(Errc::kRefused), "nobody listens for it any more");
    talk.state = Talk::State::kGone;
    return;
  }
  const std::shared_ptr<Arrivals> arrivals = listener->second;
  try {
    const Made<EndFacts> ours = agree(talk, *arrivals, lock);
    if (!ours) return refuse(talk, ours.error().error, ours.error().text);
    talk.answer = make_answer(settings_.cluster_key, talk.hello, fresh_nonce(), *ours);
    // Where the kernel gives no random number there are no further paths.
    if (ours->ticket != Ticket{}) talk_of_ticket_[ours->ticket] = &talk;
    talk.state = Talk::State::kAwaitReady;
    talk.deadline = clock_now() + settings_.handshake_timeout;
    if (!talk.send(talk.answer)) give_up(talk, {Errc::kPeerClosed, errno, "answer"}, "");
  } catch (const std::bad_alloc&) {
    if (!lock.owns_lock()) lock.lock();
    drop(talk);
  }
}

// This thread alone ends talks, and nobody else knows the connection yet.
Made<EndFacts> Control::agree(Talk& talk, const Arrivals& arrivals,
                              std::unique_lock<std::mutex>& lock) {
  const EndFacts& theirs = talk.hello.facts;
  const auto refused = [](std::string why) {
    return tl::unexpected(Refusal{{Errc::kProtocol, 0, "the exchange"}, std::move(why)});
  };
  talk.connection = std::make_shared<Connection>(arrivals.rails, Direction::kReceive, talk.remote);
  talk_of_[talk.connection.get()] = &talk;
  if (theirs.rails == 0) return refused("the peer tells of no device");
  lock.unlock();
  auto made = talk.connection->prepare(arrivals.traffic_class, &theirs);
  lock.lock();
  if (!made) return tl::unexpected(std::move(made.error()));
  EndFacts ours = talk.connection->facts();
  ours.ticket = fresh_nonce();
  if (std::string why = mismatch(ours, theirs); !why.empty()) return refused(std::move(why));
  lock.unlock();
  auto joined = talk.connection->join(theirs);
  lock.lock();
  if (!joined) return tl::unexpected(std::move(joined.error()));
  ours.on = talk.connection->facts().on;  // With what the joined devices agree upon.
  return ours;
}

void Control::on_answer(Talk& talk) {
  const Result<Answer> answer = talk.reader.take<Answer>();
  if (!answer) return give_up(talk, answer.error(), "");
  talk.answer = *answer;
  if (!is_proven(settings_.cluster_key, talk.hello, talk.answer))
    return refuse(talk, {Errc::kProtocol, 0, "the exchange"},
                  "another cluster_key: it must be equal in all hosts' ztcp.conf");
  if (const std::string why = mismatch(talk.hello.facts, answer->facts); !why.empty())
    return refuse(talk, {Errc::kProtocol, 0, "the exchange"}, why);
  if (auto joined = talk.connection->join(answer->facts); !joined)
    return refuse(talk, joined.error().error, joined.error().text);
  // What the peer begins when it hears that we are ready, it finds expected.
  on_agreed(talk);
  if (!talk.send(make_ready(settings_.cluster_key, talk.hello, talk.answer)))
    return give_up(talk, {Errc::kPeerClosed, errno, "ready"}, "");
  if (talk.state != Talk::State::kAwaitManager) open(talk);
}

// A rail of TCP of a connection that is open: it is that one's from here on.
void Control::on_stream(Talk& talk) {
  const Result<StreamHello> hello = talk.reader.take<StreamHello>();
  if (!hello) return give_up(talk, hello.error(), "");
  unwatch(talk.fd.get());
  if (Talk* const host = tickets_.take(hello->ticket))
    with_connection(*host, [&](Connection& connection) {
      connection.take_stream(hello->ticket, talk.fd);
      return Status();
    });
  else
    ++talk.over->strangers.unknown_cookie;
  talk.fd = link::Fd();  // Nobody's, or too late.
  talk.state = Talk::State::kGone;
}

void Control::on_ready(Talk& talk) {
  const Result<Ready> ready = talk.reader.take<Ready>();
  if (!ready) return give_up(talk, ready.error(), "");
  if (!is_proven(settings_.cluster_key, talk.hello, talk.answer, *ready)) {
    ++talk.over->strangers.bad_key;
    return refuse(talk, {Errc::kProtocol, 0, "the exchange"},
                  "another cluster_key: it must be equal in all hosts' ztcp.conf");
  }
  on_agreed(talk);
  if (talk.state != Talk::State::kAwaitManager) open(talk);
}

void Control::on_agreed(Talk& talk) {
  if (!talk.connection->needs_manager()) return;
  talk.connection->begin_cm_connection(manager_, talk.hello.nonce);
  talk.state = Talk::State::kAwaitManager;
}

void Control::open(Talk& talk) {
  if (talk.connection->direction() == Direction::kReceive) {
    const auto listener = listeners_.find(talk.cookie);
    if (listener == listeners_.end())
      return refuse(talk, {Errc::kRefused, 0, "the exchange"}, "nobody listens for it any more");
    listener->second->ready.push_back(talk.connection);
  }
  talk.state = Talk::State::kOpen;
  talk.deadline = kNever;
  talk.connection->rails().first().ends.opened();
  talk.connection->await_tcp(clock_now() + settings_.connect_timeout);
  begin_paths(talk);
  {
    const auto lock = talk.connection->lock();
    if (const Status fit = talk.connection->lose_unfit(); !fit)
      talk.connection->hear(PeerEvent::kDeviceLost, fit.error().code, fit.error().where);
  }
  talk.connection->succeed();
  // Rails of TCP are to begin.
  const auto lock = talk.connection->lock();
  send_notes(talk);
}

void Control::check_cm_connections() {
  if (manager_ == nullptr) return;
  for (const auto& talk : talks_) {
    if (talk->state != Talk::State::kAwaitManager) continue;
    const CmConnection& joining = talk->connection->cm_connection();
    if (joining.state() == CmConnection::State::kJoined) open(*talk);
    if (joining.state() == CmConnection::State::kFailed)
      refuse(*talk, {Errc::kRefused, 0, "the connection manager"}, joining.why());
  }
}

}  // namespace ztcp::verbs
