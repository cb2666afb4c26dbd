// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/listener.h"

#include <sys/random.h>

#include "core/log.h"
#include "core/process_mark.h"

namespace ztcp::comms {

CommListener::CommListener(std::shared_ptr<Nic> nic, const msg::Cookie& cookie,
                           const CommSettings& settings)
    : nic_(std::move(nic)),
      cookie_(cookie),
      settings_(settings),
      handle_(nic_->issue_handle(cookie)) {
  for (const auto& poller : nic_->pollers) arrivals_.emplace_back(*this, *poller);
}

Result<std::unique_ptr<CommListener>> CommListener::open(std::shared_ptr<Nic> nic,
                                                         const CommSettings& settings) {
  msg::Cookie cookie{};
  if (getrandom(cookie.data(), cookie.size(), 0) != static_cast<ssize_t>(cookie.size())) {
    return fail_errno("getrandom");
  }
  std::unique_ptr<CommListener> listener(new CommListener(std::move(nic), cookie, settings));
  for (Arrivals& arrivals : listener->arrivals_) {
    ZTCP_CHECK(arrivals.poller.with_backend([&](TimePoint) -> Status {
      arrivals.listens = true;
      return arrivals.poller.backend().sessions().acceptor().add_listener(cookie, arrivals);
    }));
  }
  return listener;
}

CommListener::~CommListener() {
  if (in_forked_child()) {
    new std::shared_ptr<Nic>(std::move(nic_));  // NOLINT: leaked on purpose: it is the parent's.
    return;
  }
  for (Arrivals& arrivals : arrivals_) {
    if (!arrivals.listens) continue;
    arrivals.poller.with_backend([&](TimePoint now) {
      arrivals.poller.backend().sessions().acceptor().remove_listener(cookie_);
      for (ReceivingComm* comm : arrivals.comms) {
        comm->fail_now(now, Error{Errc::kAborted, 0, "listener closed"});
        comm->end(now);
      }
    });
  }
}

void CommListener::Arrivals::on_session(TimePoint, std::unique_ptr<msg::RecvSession> session) {
  if (comms.size() >= kBacklog) {
    session->abort();
    return;
  }
  if (listener.settings_.dscp) session->set_dscp(*listener.settings_.dscp);
  const auto comm =
      ReceivingComm::adopt(poller, std::move(session), listener.settings_.communicator);
  if (!comm) return;  // The table of clients is full: the session was reset.
  comms.push_back(*comm);
  listener.waiting_.fetch_add(1, std::memory_order_release);
}

Result<RecvCommPtr> CommListener::accept() {
  for (const auto& poller : nic_->pollers) poller->progress();
  if (Poller* const poller = nic_->lost_poller(); poller != nullptr) {
    const Backend& lost = poller->backend();
    log::warn("accepting on port {} failed: {}: {}", nic_->listen_endpoint.port, lost.lost_reason(),
              lost.lost_advice());
    return tl::unexpected(lost.lost_error());
  }
  if (waiting_.load(std::memory_order_acquire) == 0) return nullptr;
  ReceivingComm* comm = nullptr;
  for (auto arrivals = arrivals_.begin(); comm == nullptr && arrivals != arrivals_.end();
       ++arrivals) {
    arrivals->poller.with_backend([&](TimePoint) {
      if (arrivals->comms.empty()) return;
      comm = arrivals->comms.front();
      arrivals->comms.erase(arrivals->comms.begin());
    });
  }
  if (comm == nullptr) return nullptr;
  waiting_.fetch_sub(1, std::memory_order_release);
  return comm->accepted(nic_);
}

}  // namespace ztcp::comms
