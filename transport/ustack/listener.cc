// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/listener.h"

#include <sys/random.h>

#include "transport/core/listen_address.h"
#include "transport/core/log.h"
#include "transport/core/process_mark.h"

namespace ztcp::ustack {

UstackListener::UstackListener(std::shared_ptr<Nic> nic, const msg::Cookie& cookie)
    : nic_(std::move(nic)),
      cookie_(cookie),
      handle_{TransportKind::kUstack,
              to_bytes({nic_->listen_endpoint,
                        nic_->death_watch != nullptr ? nic_->death_watch->endpoint() : Endpoint{},
                        cookie})} {
  if (nic_->death_watch != nullptr) nic_->death_watch->expect(cookie);
}

Result<std::unique_ptr<UstackListener>> UstackListener::open(std::shared_ptr<Nic> nic) {
  msg::Cookie cookie{};
  if (getrandom(cookie.data(), cookie.size(), 0) != static_cast<ssize_t>(cookie.size())) {
    return fail_errno("getrandom");
  }
  Poller& poller = *nic->poller;
  std::unique_ptr<UstackListener> listener(new UstackListener(std::move(nic), cookie));
  ZTCP_CHECK(poller.with_engine([&](Engine& engine, TimePoint) -> Status {
    listener->engine_ = &engine;
    return engine.listen(cookie, *listener);
  }));
  return listener;
}

UstackListener::~UstackListener() {
  if (in_forked_child()) {
    new std::shared_ptr<Nic>(std::move(nic_));  // NOLINT: leaked on purpose: it is the parent's.
    return;
  }
  nic_->poller->with_engine([&](Engine& engine, TimePoint now) {
    engine.unlisten(cookie_);
    for (UstackRecvComm* comm : arrived_) {
      comm->fail_now(now, Error{Errc::kAborted, 0, "listener closed"});
      comm->end(now);
    }
  });
}

void UstackListener::on_session(TimePoint, std::unique_ptr<msg::RecvSession> session) {
  if (arrived_.size() >= kBacklog) {
    session->abort();
    return;
  }
  const auto comm = UstackRecvComm::adopt(*nic_->poller, *engine_, std::move(session));
  if (!comm) return;  // The table is full; the peer was told by RST.
  arrived_.push_back(*comm);
  waiting_.store(arrived_.size(), std::memory_order_release);
}

Result<RecvCommPtr> UstackListener::accept() {
  if (in_forked_child()) return fail(Errc::kForked, "accept");
  nic_->poller->progress();
  if (nic_->poller->link_is_lost()) {
    log::warn("accepting on port {} failed: {}: {}", nic_->listen_endpoint.port,
              nic_->poller->lost_reason(), nic_->poller->lost_advice());
    return tl::unexpected(nic_->poller->lost_error());
  }
  if (waiting_.load(std::memory_order_acquire) == 0) return nullptr;
  UstackRecvComm* comm = nullptr;
  nic_->poller->with_engine([&](Engine&, TimePoint) {
    comm = arrived_.front();
    arrived_.pop_front();
    waiting_.store(arrived_.size(), std::memory_order_release);
  });
  return comm->accepted(nic_);
}

}  // namespace ztcp::ustack
