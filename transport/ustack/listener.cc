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
  for (const auto& poller : nic_->pollers) arrivals_.emplace_back(*this, *poller);
  if (nic_->death_watch != nullptr) nic_->death_watch->expect(cookie);
}

Result<std::unique_ptr<UstackListener>> UstackListener::open(std::shared_ptr<Nic> nic) {
  msg::Cookie cookie{};
  if (getrandom(cookie.data(), cookie.size(), 0) != static_cast<ssize_t>(cookie.size())) {
    return fail_errno("getrandom");
  }
  std::unique_ptr<UstackListener> listener(new UstackListener(std::move(nic), cookie));
  for (Arrivals& arrivals : listener->arrivals_) {
    ZTCP_CHECK(arrivals.poller.with_engine([&](Engine& engine, TimePoint) -> Status {
      arrivals.engine = &engine;
      return engine.listen(cookie, arrivals);
    }));
  }
  return listener;
}

UstackListener::~UstackListener() {
  if (in_forked_child()) {
    new std::shared_ptr<Nic>(std::move(nic_));  // NOLINT: leaked on purpose: it is the parent's.
    return;
  }
  for (Arrivals& arrivals : arrivals_) {
    if (arrivals.engine == nullptr) continue;
    arrivals.poller.with_engine([&](Engine& engine, TimePoint now) {
      engine.unlisten(cookie_);
      for (UstackRecvComm* comm : arrivals.comms) {
        comm->fail_now(now, Error{Errc::kAborted, 0, "listener closed"});
        comm->end(now);
      }
    });
  }
}

void UstackListener::Arrivals::on_session(TimePoint, std::unique_ptr<msg::RecvSession> session) {
  if (comms.size() >= kBacklog) {
    session->abort();
    return;
  }
  const auto comm = UstackRecvComm::adopt(poller, *engine, std::move(session));
  if (!comm) return;  // The table is full; the peer was told by RST.
  comms.push_back(*comm);
  listener.waiting_.fetch_add(1, std::memory_order_release);
}

Result<RecvCommPtr> UstackListener::accept() {
  if (in_forked_child()) return fail(Errc::kForked, "accept");
  for (const auto& poller : nic_->pollers) poller->progress();
  if (const Poller* const lost = nic_->lost_queue(); lost != nullptr) {
    log::warn("accepting on port {} failed: {}: {}", nic_->listen_endpoint.port,
              lost->lost_reason(), lost->lost_advice());
    return tl::unexpected(lost->lost_error());
  }
  if (waiting_.load(std::memory_order_acquire) == 0) return nullptr;
  UstackRecvComm* comm = nullptr;
  for (auto arrivals = arrivals_.begin(); comm == nullptr && arrivals != arrivals_.end();
       ++arrivals) {
    arrivals->poller.with_engine([&](Engine&, TimePoint) {
      if (arrivals->comms.empty()) return;
      comm = arrivals->comms.front();
      arrivals->comms.pop_front();
    });
  }
  if (comm == nullptr) return nullptr;
  waiting_.fetch_sub(1, std::memory_order_release);
  return comm->accepted(nic_);
}

}  // namespace ztcp::ustack
