// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One NIC's watch over the processes at the other ends: a kernel TCP connection to each tells of an
// end (watch/peer_watch.h), silence on all others confirms it (suspects.h), and then every comm
// with that process fails, by its name. Without it they fail all the same, as late as silence
// tells.
#pragma once

#include <memory>
#include <string>

#include "config/settings.h"
#include "transport/comms/suspects.h"
#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/msg/session.h"
#include "transport/watch/peer_watch.h"

namespace ztcp::comms {

class Nic;

class DeathWatch {
 public:
  struct Watcher {
    std::string nic;
    IpAddress address;
    bool is_of_this_machine = false;  // So are all its peers.
    // The kernel's: its peers hear of this process's end without a watch, and so do we of theirs
    // but for those that drive a NIC themselves.
    bool is_kernels = false;
    Duration probe_interval;
  };
  // nullptr: switched off, or impossible here, which is said.
  static std::shared_ptr<DeathWatch> open(const config::Fabric& fabric, const Watcher& watcher);

  // --- Control threads ---------------------------------------------------------------------------
  // Where peers call; goes into their handles.
  Endpoint endpoint() const { return kernel_->endpoint(); }
  // Who has a handle with this cookie is welcome.
  void expect(const msg::Cookie& cookie);
  void dial(IpAddress nic, Endpoint to, const msg::Cookie& cookie);

  // --- The background thread of the first of the NIC's pollers, without a baton ------------------
  void look(const Nic& nic, TimePoint now);

 private:
  DeathWatch(const Watcher& watcher, std::unique_ptr<watch::PeerWatch> kernel)
      : nic_(watcher.nic), kernel_(std::move(kernel)), suspects_(watcher.probe_interval) {}
  void say_trouble();

  const std::string nic_;
  const std::unique_ptr<watch::PeerWatch> kernel_;
  Suspects suspects_;
};

}  // namespace ztcp::comms
