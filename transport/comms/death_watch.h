// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One NIC's watch over its peers' processes. The end of a kernel TCP connection to a process hints
// at its death (watch/peer_watch.h), silence on all its other connections confirms it (suspects.h),
// and then every comm with that process fails with an error that names it. Without the watch these
// comms fail, too, but only after the timeouts for a silent peer.
#pragma once

#include <memory>
#include <string>

#include "config/settings.h"
#include "core/address.h"
#include "core/clock.h"
#include "transport/comms/suspects.h"
#include "transport/msg/session.h"
#include "transport/watch/peer_watch.h"

namespace ztcp::comms {

class Nic;

class DeathWatch {
 public:
  struct Watcher {
    std::string nic;
    IpAddress address;
    bool is_of_this_machine = false;  // And all its peers are.
    // The NIC is the kernel's, which tells peers of this process's end without a watch. The watch
    // is needed only for peers that drive their NICs themselves.
    bool is_kernels = false;
    Duration probe_interval;
  };
  // nullptr: switched off, or impossible here, which is logged.
  static std::shared_ptr<DeathWatch> open(const config::Fabric& fabric, const Watcher& watcher);

  // --- Control threads ---------------------------------------------------------------------------
  // Replaces Watcher::address, where it was not known: before the first expect() and dial().
  void set_address(IpAddress address) { kernel_->set_nic(address); }
  // The address that peers connect to; part of their handles.
  Endpoint endpoint() const { return kernel_->endpoint(); }
  // Accepts peers that have a handle with this cookie.
  void expect(const msg::Cookie& cookie);
  void dial(IpAddress nic, Endpoint to, const msg::Cookie& cookie);

  // --- The background thread of the first of the NIC's pollers, without a baton ------------------
  void check(const Nic& nic, TimePoint now);

 private:
  DeathWatch(const Watcher& watcher, std::unique_ptr<watch::PeerWatch> kernel)
      : nic_(watcher.nic), kernel_(std::move(kernel)), suspects_(watcher.probe_interval) {}
  void say_trouble();

  const std::string nic_;
  const std::unique_ptr<watch::PeerWatch> kernel_;
  Suspects suspects_;
};

}  // namespace ztcp::comms
