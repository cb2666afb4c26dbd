// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A listening comm: a cookie known to the NIC's acceptors and the sessions that arrived for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/result.h"
#include "transport/comms/comm.h"
#include "transport/comms/nic.h"
#include "transport/msg/acceptor.h"
#include "transport/transport.h"

namespace ztcp::comms {

class CommListener final : public Listener {
 public:
  static Result<std::unique_ptr<CommListener>> open(std::shared_ptr<Nic> nic,
                                                    const CommSettings& settings = {});
  // Resets the sessions that were not accepted.
  ~CommListener() override;

  const PeerHandle& handle() const override { return handle_; }
  Result<RecvCommPtr> accept() override;

 private:
  // A peer connects once per handle. More sessions than this are a caller's mistake, and reset.
  static constexpr std::size_t kBacklog = 64;

  // The sessions that arrived on one of the NIC's pollers: the dialling side chooses which.
  struct Arrivals final : msg::ListenerEvents {
    Arrivals(CommListener& of, Poller& on) : listener(of), poller(on) { comms.reserve(kBacklog); }
    void on_session(TimePoint now, std::unique_ptr<msg::RecvSession> session) override;

    CommListener& listener;
    Poller& poller;
    bool listens = false;
    std::vector<ReceivingComm*> comms;  // In order of arrival; guarded by the poller's baton.
  };

  CommListener(std::shared_ptr<Nic> nic, const msg::Cookie& cookie, const CommSettings& settings);

  std::shared_ptr<Nic> nic_;
  const msg::Cookie cookie_;
  const CommSettings settings_;
  const PeerHandle handle_;
  std::deque<Arrivals> arrivals_;        // By poller.
  std::atomic<std::size_t> waiting_{0};  // Number of all, so that accept() needs no baton to ask.
};

}  // namespace ztcp::comms
