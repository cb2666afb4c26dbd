// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The NIC of comms and listeners. Shared by the transport and by every comm and listener on it; the
// last of them destroys it. Each transport derives its own kind.
//
// A NIC may have several pollers, which share only its address: a connection stays on the poller
// that dialled it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/clock.h"
#include "transport/comms/death_watch.h"
#include "transport/comms/end_log.h"
#include "transport/comms/memory_timeout.h"
#include "transport/comms/poller.h"
#include "transport/msg/session.h"
#include "transport/transport.h"

namespace ztcp::comms {

class Nic {
 public:
  explicit Nic(std::string name) : end_log(std::move(name)) {}
  virtual ~Nic() { end_pollers(); }
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // The handle that lets peers connect to the listener with this cookie.
  virtual PeerHandle issue_handle(const msg::Cookie& cookie) = 0;

  // All pollers, in the order in which a new connection should try them: fewest dialled first.
  std::vector<Poller*> by_dialled(const IpAddress& peer) const {
    const std::size_t first = first_dialled_from(peer);
    std::vector<Poller*> all;
    for (std::size_t i = 0; i < pollers.size(); ++i)
      all.push_back(pollers[(first + i) % pollers.size()].get());
    std::stable_sort(all.begin(), all.end(),
                     [](const Poller* a, const Poller* b) { return a->dialled() < b->dialled(); });
    return all;
  }
  // Null: no poller has lost the NIC.
  Poller* lost_poller() const {
    const auto lost = std::find_if(pollers.begin(), pollers.end(),
                                   [](const auto& poller) { return poller->is_lost(); });
    return lost == pollers.end() ? nullptr : lost->get();
  }

  Duration link_timeout{};  // How long a comm waits for carrier before it fails.
  MemoryTimeout memory_timeout;
  Endpoint listen_endpoint;
  EndLog end_log;
  std::shared_ptr<DeathWatch> death_watch;  // Run by the first poller's thread; null: none.
  std::vector<std::unique_ptr<Poller>> pollers;

 protected:
  // The poller that dials the first connection to a peer. The peer should dial its own from another
  // one, so that a few connections each way already use all pollers.
  virtual std::size_t first_dialled_from(const IpAddress&) const { return 0; }
  // For destructors of derived classes that own something pollers use. The first poller's thread
  // visits all pollers (DeathWatch::check()), so it is stopped before any is destroyed.
  void end_pollers() {
    if (!pollers.empty()) pollers.front()->stop();
    pollers.clear();
  }
};

}  // namespace ztcp::comms
