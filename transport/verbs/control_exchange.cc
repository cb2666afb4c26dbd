// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The exchange by which two ends agree before their connection is ready (exchange.h). All of it
// under the lock.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {

void ControlThread::on_hello(ControlConnection& control) {
  const Result<Hello> hello = control.reader.take<Hello>();
  if (!hello) return give_up(control, hello.error(), "");
  const auto listener = listeners_.find(hello->cookie);
  // The hello is of a port scanner, or of a rank that has given up.
  if (listener == listeners_.end()) {
    ++control.over->strangers.unknown_cookie;
    control.send_close(static_cast<std::uint8_t>(Errc::kRefused), "nobody listens for it any more");
    control.state = ControlConnection::State::kGone;
    return;
  }
  control.hello = *hello;
  control.cookie = hello->cookie;
  control.state = ControlConnection::State::kQueued;
  control.deadline = kNever;
  hellos_.push_back(&control);
}

// Hellos are served one after the other. The senders of the queued ones are told to wait, however
// many there are.
void ControlThread::tell_to_wait(TimePoint now) {
  if (hellos_.empty() || now < wait_due_) return;
  wait_due_ = now + std::min<Duration>(std::chrono::seconds(1), settings_.connect_timeout / 4);
  for (ControlConnection* const control : hellos_) control->send(make_wait());
}

void ControlThread::answer_next(std::unique_lock<std::mutex>& lock) {
  ControlConnection& control = *hellos_.front();
  hellos_.pop_front();
  if (control.state != ControlConnection::State::kQueued) return;
  const auto listener = listeners_.find(control.cookie);
  if (listener == listeners_.end()) {
    control.send_close(static_cast<std::uint8_t>(Errc::kRefused), "nobody listens for it any more");
    control.state = ControlConnection::State::kGone;
    return;
  }
  const std::shared_ptr<Arrivals> arrivals = listener->second;
  try {
    const Result<EndFacts, ReasonedError> ours = agree(control, *arrivals, lock);
    if (!ours) return refuse(control, ours.error().error, ours.error().reason);
    control.answer = make_answer(settings_.cluster_key, control.hello, fresh_nonce(), *ours);
    // Without a random number from the kernel there are no further paths.
    if (ours->ticket != Ticket{}) control_of_ticket_[ours->ticket] = &control;
    control.state = ControlConnection::State::kAwaitReady;
    control.deadline = clock_now() + settings_.handshake_timeout;
    if (!control.send(control.answer)) give_up(control, {Errc::kPeerClosed, errno, "answer"}, "");
  } catch (const std::bad_alloc&) {
    if (!lock.owns_lock()) lock.lock();
    drop(control);
  }
}

// May release the lock: only this thread ends control connections, and no other thread knows the
// connection yet.
Result<EndFacts, ReasonedError> ControlThread::agree(ControlConnection& control,
                                                     const Arrivals& arrivals,
                                                     std::unique_lock<std::mutex>& lock) {
  const EndFacts& theirs = control.hello.facts;
  const auto refused = [](std::string why) {
    return fail({Errc::kProtocol, 0, "the exchange"}, std::move(why));
  };
  control.connection =
      std::make_shared<Connection>(arrivals.rails, Direction::kReceive, control.remote);
  control_of_[control.connection.get()] = &control;
  open_report(control, arrivals.communicator);
  if (theirs.rails == 0) return refused("the peer tells of no device");
  lock.unlock();
  auto made = control.connection->prepare(arrivals.traffic_class, &theirs);
  lock.lock();
  ZTCP_CHECK(made);
  EndFacts ours = control.connection->facts();
  ours.ticket = fresh_nonce();
  if (std::string why = mismatch(ours, theirs); !why.empty()) return refused(std::move(why));
  lock.unlock();
  auto joined = control.connection->join(theirs);
  lock.lock();
  ZTCP_CHECK(joined);
  // Includes the values that the joined devices have agreed upon.
  ours.on = control.connection->facts().on;
  return ours;
}

void ControlThread::on_answer(ControlConnection& control) {
  const Result<Answer> answer = control.reader.take<Answer>();
  if (!answer) return give_up(control, answer.error(), "");
  control.answer = *answer;
  if (!is_proven(settings_.cluster_key, control.hello, control.answer))
    return refuse(control, {Errc::kProtocol, 0, "the exchange"},
                  std::string(unproven_text(settings_.cluster_key)));
  if (const std::string why = mismatch(control.hello.facts, answer->facts); !why.empty())
    return refuse(control, {Errc::kProtocol, 0, "the exchange"}, why);
  if (auto joined = control.connection->join(answer->facts); !joined)
    return refuse(control, joined.error().error, joined.error().reason);
  // Before the peer hears that we are ready: the connections that it begins then must be expected.
  on_agreed(control);
  if (!control.send(make_ready(settings_.cluster_key, control.hello, control.answer)))
    return give_up(control, {Errc::kPeerClosed, errno, "ready"}, "");
  if (control.state != ControlConnection::State::kAwaitManager) open(control);
}

// The stream of a rail of TCP: it is handed to the connection that gave out the ticket.
void ControlThread::on_stream(ControlConnection& control) {
  const Result<StreamHello> hello = control.reader.take<StreamHello>();
  if (!hello) return give_up(control, hello.error(), "");
  unwatch(control.fd.get());
  if (ControlConnection* const host = tickets_.take(hello->ticket))
    with_recovery(*host, [&](Recovery& recovery) {
      recovery.take_stream(hello->ticket, control.fd);
      return Status();
    });
  else
    ++control.over->strangers.unknown_cookie;
  control.fd = Fd();  // Closed if the ticket is unknown or too late.
  control.state = ControlConnection::State::kGone;
}

void ControlThread::on_ready(ControlConnection& control) {
  const Result<Ready> ready = control.reader.take<Ready>();
  if (!ready) return give_up(control, ready.error(), "");
  if (!is_proven(settings_.cluster_key, control.hello, control.answer, *ready)) {
    ++control.over->strangers.bad_key;
    return refuse(control, {Errc::kProtocol, 0, "the exchange"},
                  std::string(unproven_text(settings_.cluster_key)));
  }
  on_agreed(control);
  if (control.state != ControlConnection::State::kAwaitManager) open(control);
}

void ControlThread::on_agreed(ControlConnection& control) {
  if (!control.connection->needs_manager()) return;
  control.connection->begin_cm_connection(manager_, control.hello.nonce);
  control.state = ControlConnection::State::kAwaitManager;
}

void ControlThread::open(ControlConnection& control) {
  if (control.connection->direction() == Direction::kReceive) {
    const auto listener = listeners_.find(control.cookie);
    if (listener == listeners_.end())
      return refuse(control, {Errc::kRefused, 0, "the exchange"}, "nobody listens for it any more");
    listener->second->ready.push_back(control.connection);
  }
  control.state = ControlConnection::State::kOpen;
  control.deadline = kNever;
  control.connection->rails().first().ends.opened();
  if (DevicePage* const device = page_of(control.connection->rails()))
    device->note_opened(control.connection->direction());
  control.connection->recovery().await_tcp(clock_now() + settings_.connect_timeout);
  begin_paths(control);
  {
    const auto lock = control.connection->lock();
    if (const Status fit = control.connection->recovery().lose_unfit(); !fit)
      control.connection->peer_status().report(PeerEvent::kDeviceLost, fit.error().code,
                                               fit.error().where);
  }
  control.connection->succeed();
  // Rails of TCP begin now.
  const auto lock = control.connection->lock();
  send_notes(control);
}

void ControlThread::check_cm_connections() {
  if (manager_ == nullptr) return;
  for (const auto& control : controls_) {
    if (control->state != ControlConnection::State::kAwaitManager) continue;
    const CmConnection& joining = control->connection->cm_connection();
    if (joining.state() == CmConnection::State::kJoined) open(*control);
    if (joining.state() == CmConnection::State::kFailed)
      refuse(*control, {Errc::kRefused, 0, "the connection manager"}, joining.why());
  }
}

}  // namespace ztcp::verbs
