// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One NIC's watch over the processes at the other ends: a kernel TCP connection to each tells of an
// end (watch/peer_watch.h), the NIC's silence confirms it (suspects.h), and then every comm with
// that process fails, by its name. Without it they fail all the same, as late as silence tells.
#pragma once

#include <memory>
#include <string>

#include "config/settings.h"
#include "transport/msg/session.h"
#include "transport/ustack/engine/suspects.h"
#include "transport/watch/peer_watch.h"

namespace ztcp::ustack {

class Nic;

class DeathWatch {
 public:
  // nullptr: switched off, or impossible here, which is said.
  static std::shared_ptr<DeathWatch> open(const config::Fabric& fabric, const config::Nic& nic);

  // --- Control threads ---------------------------------------------------------------------------
  // Where peers call; goes into their handles.
  Endpoint endpoint() const { return kernel_->endpoint(); }
  // Who has a handle with this cookie is welcome.
  void expect(const msg::Cookie& cookie);
  void dial(IpAddress nic, Endpoint to, const msg::Cookie& cookie);

  // --- The background thread of the first of the NIC's pollers, without a baton ------------------
  void look(const Nic& nic, TimePoint now);

 private:
  DeathWatch(std::string nic, std::unique_ptr<watch::PeerWatch> kernel)
      : nic_(std::move(nic)), kernel_(std::move(kernel)) {}
  void say_trouble();

  const std::string nic_;
  const std::unique_ptr<watch::PeerWatch> kernel_;
  Suspects suspects_;
};

}  // namespace ztcp::ustack
