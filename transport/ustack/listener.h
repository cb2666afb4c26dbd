// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A listening comm: a cookie known to the NIC's acceptor and the sessions that arrived for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>

#include "transport/core/result.h"
#include "transport/msg/acceptor.h"
#include "transport/transport.h"
#include "transport/ustack/nic.h"
#include "transport/ustack/recv_comm.h"

namespace ztcp::ustack {

class UstackListener final : public Listener, private msg::ListenerEvents {
 public:
  static Result<std::unique_ptr<UstackListener>> open(std::shared_ptr<Nic> nic);
  // Sessions that nobody accepted are reset.
  ~UstackListener() override;

  const PeerHandle& handle() const override { return handle_; }
  Result<RecvCommPtr> accept() override;

 private:
  UstackListener(std::shared_ptr<Nic> nic, const msg::Cookie& cookie);
  void on_session(TimePoint now, std::unique_ptr<msg::RecvSession> session) override;

  // A peer connects once per handle; more than this many are somebody else's mistake.
  static constexpr std::size_t kBacklog = 64;

  std::shared_ptr<Nic> nic_;
  const msg::Cookie cookie_;
  const PeerHandle handle_;
  Engine* engine_ = nullptr;
  std::deque<UstackRecvComm*> arrived_;  // Guarded by the baton.
  std::atomic<std::size_t> waiting_{0};  // arrived_.size(), for accept() to ask cheaply.
};

}  // namespace ztcp::ustack
