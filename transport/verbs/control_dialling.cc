// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a sender comes to its exchange: it dials the receiver, over one of its rails after the other,
// again where it is turned away, and waits as long as the receiver has others before it. All of it
// under the lock.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "transport/verbs/control.h"

namespace ztcp::verbs {

void Control::on_dialled(Talk& talk) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(talk.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    const Error failed = sockets::connect_error(talk.fd, error);
    if (dials_again(talk, failed)) return;
    return give_up(talk, failed, std::strerror(error));
  }
  talk.dial_due = kNever;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = talk.fd.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, talk.fd.get(), &event);
  sockets::limit_silence(talk.fd, settings_.times);
  if (talk.is_path()) return greet_path(talk);
  talk.hello = make_hello(talk.cookie, fresh_nonce(), talk.connection->facts());
  talk.state = Talk::State::kAwaitAnswer;
  if (talk.send(talk.hello)) return;
  const Error failed{Errc::kPeerClosed, errno, "hello"};
  if (!dials_again(talk, failed)) give_up(talk, failed, "");
}

// Its process lives, else the connection would be refused: the listener had no place, or lost it to
// a newer one before the hello came.
bool Control::dials_again(Talk& talk, const Error& error) {
  const bool is_unanswered =
      talk.state == Talk::State::kDialling || talk.state == Talk::State::kAwaitAnswer;
  if (talk.is_path() || !is_unanswered) return false;
  // Where no rail leads to the peer it ends at its deadline.
  const bool is_of_rail = error.code == Errc::kNoRoute || error.code == Errc::kTimedOut;
  if (error.code != Errc::kPeerClosed && !(is_of_rail && rails_to(talk).size() > 1)) return false;
  forget(talk);
  talk.reader = {};
  talk.last_failure = error.sys_errno == 0 ? "it closed the connection before its answer"
                                           : std::strerror(error.sys_errno);
  talk.state = Talk::State::kPausing;
  talk.dial_due = clock_now() + talk.dial_pause;
  talk.dial_pause = std::min(2 * talk.dial_pause, Talk::kLongestDialPause);
  return true;
}

void Control::dial_again(Talk& talk, TimePoint now) {
  talk.dial_due = kNever;
  if (talk.state == Talk::State::kDialling) {
    forget(talk);
    talk.last_failure = "no answer over " + talk.over->device.place();
  } else if (talk.state != Talk::State::kPausing) {
    return;
  }
  ++talk.dials;
  if (const Status dialled = dial_once(talk, now); !dialled && !dials_again(talk, dialled.error()))
    give_up(talk, dialled.error(), std::strerror(dialled.error().sys_errno));
}

std::vector<Rail*> Control::rails_to(const Talk& talk) {
  return talk.connection->rails().exchange_rails(talk.remote.address.is_v4());
}

// Of several rails one after the other is tried.
Status Control::dial_once(Talk& talk, TimePoint now) {
  talk.state = Talk::State::kDialling;
  const std::vector<Rail*> rails = rails_to(talk);
  if (rails.empty()) return fail(Errc::kNoRoute, "connect to another family", EAFNOSUPPORT);
  talk.over = rails[talk.dials % rails.size()];
  if (rails.size() > 1) talk.dial_due = now + settings_.connect_timeout / (2 * rails.size());
  talk.fd = ZTCP_TRY(sockets::dial(talk.over->device.exchange, settings_.times, talk.remote));
  if (watch(talk.fd.get(), EPOLLOUT | EPOLLIN | EPOLLRDHUP, {Watched::kTalk, &talk})) return {};
  const Status outcome = fail_errno("epoll_ctl");
  talk.fd = link::Fd();
  return outcome;
}

void Control::on_wait(Talk& talk) {
  if (const Result<Wait> wait = talk.reader.take<Wait>(); !wait)
    return give_up(talk, wait.error(), "");
  // The answering peer is not authenticated yet, so the wait is bounded.
  constexpr int kMostWaits = 30;
  const TimePoint now = clock_now();
  if (talk.waits_until == kNever) talk.waits_until = now + kMostWaits * settings_.connect_timeout;
  talk.deadline = std::min(now + settings_.connect_timeout, talk.waits_until);
}

}  // namespace ztcp::verbs
