// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a sender starts its exchange: it dials the receiver over one rail after the other, dials
// again if it is turned away, and waits as long as the receiver serves others first. All of it
// under the lock.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {

void ControlThread::on_dialled(ControlConnection& control) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(control.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    const Error failed = sockets::connect_error(control.fd, error);
    if (dials_again(control, failed)) return;
    return give_up(control, failed, std::strerror(error));
  }
  control.dial_due = kNever;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = control.fd.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, control.fd.get(), &event);
  sockets::limit_silence(control.fd, settings_.times);
  if (control.is_path()) return greet_path(control);
  control.hello = make_hello(control.cookie, fresh_nonce(), control.connection->facts());
  control.state = ControlConnection::State::kAwaitAnswer;
  if (control.send(control.hello)) return;
  const Error failed{Errc::kPeerClosed, errno, "hello"};
  if (!dials_again(control, failed)) give_up(control, failed, "");
}

// The receiver's process is alive, or the kernel would refuse the connection. Its listener had no
// room, or dropped this connection for a newer one before the hello arrived.
bool ControlThread::dials_again(ControlConnection& control, const Error& error) {
  const bool is_unanswered = control.state == ControlConnection::State::kDialling ||
                             control.state == ControlConnection::State::kAwaitAnswer;
  if (control.is_path() || !is_unanswered) return false;
  // If no rail leads to the peer, the attempts end at the deadline.
  const bool is_of_rail = error.code == Errc::kNoRoute || error.code == Errc::kTimedOut;
  if (error.code != Errc::kPeerClosed && !(is_of_rail && rails_to(control).size() > 1))
    return false;
  forget(control);
  control.reader = {};
  control.last_failure = error.sys_errno == 0 ? "it closed the connection before its answer"
                                              : std::strerror(error.sys_errno);
  control.state = ControlConnection::State::kPausing;
  control.dial_due = clock_now() + control.dial_pause;
  control.dial_pause = std::min(2 * control.dial_pause, ControlConnection::kLongestDialPause);
  return true;
}

void ControlThread::dial_again(ControlConnection& control, TimePoint now) {
  control.dial_due = kNever;
  if (control.state == ControlConnection::State::kDialling) {
    forget(control);
    control.last_failure = "no answer over " + control.over->device.place();
  } else if (control.state != ControlConnection::State::kPausing) {
    return;
  }
  ++control.dials;
  if (const Status dialled = dial_once(control, now);
      !dialled && !dials_again(control, dialled.error()))
    give_up(control, dialled.error(), std::strerror(dialled.error().sys_errno));
}

std::vector<Rail*> ControlThread::rails_to(const ControlConnection& control) {
  return control.connection->rails().exchange_rails(control.remote.address.is_v4());
}

// Dials over the next rail.
Status ControlThread::dial_once(ControlConnection& control, TimePoint now) {
  control.state = ControlConnection::State::kDialling;
  const std::vector<Rail*> rails = rails_to(control);
  if (rails.empty()) return fail(Errc::kNoRoute, "connect to another family", EAFNOSUPPORT);
  control.over = rails[control.dials % rails.size()];
  if (rails.size() > 1) control.dial_due = now + settings_.connect_timeout / (2 * rails.size());
  control.fd =
      ZTCP_TRY(sockets::dial(control.over->device.exchange, settings_.times, control.remote));
  if (watch(control.fd.get(), EPOLLOUT | EPOLLIN | EPOLLRDHUP, {Watched::kControl, &control}))
    return {};
  const Status outcome = fail_errno("epoll_ctl");
  control.fd = Fd();
  return outcome;
}

void ControlThread::on_wait(ControlConnection& control) {
  if (const Result<Wait> wait = control.reader.take<Wait>(); !wait)
    return give_up(control, wait.error(), "");
  // The peer is not authenticated yet, so the wait is bounded.
  constexpr int kMostWaits = 30;
  const TimePoint now = clock_now();
  if (control.waits_until == kNever)
    control.waits_until = now + kMostWaits * settings_.connect_timeout;
  control.deadline = std::min(now + settings_.connect_timeout, control.waits_until);
}

}  // namespace ztcp::verbs
