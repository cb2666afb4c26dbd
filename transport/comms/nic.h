// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What comms and listeners know of the NIC that they are on. Shared by the transport and by every
// comm and listener on it, so that the last of them ends it. Each transport has its own kind.
//
// A NIC may have several pollers, which share nothing but the address: a connection stays on the
// one that it was dialled from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/comms/death_watch.h"
#include "transport/comms/end_log.h"
#include "transport/comms/memory_timeout.h"
#include "transport/comms/poller.h"
#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/msg/session.h"
#include "transport/transport.h"

namespace ztcp::comms {

class Nic {
 public:
  explicit Nic(std::string name) : end_log(std::move(name)) {}
  virtual ~Nic() { end_pollers(); }
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // What a listener with this cookie tells its peers, who will come.
  virtual PeerHandle issue_handle(const msg::Cookie& cookie) = 0;

  // For one more connection: the pollers, first the one that has the fewest of those dialled here.
  std::vector<Poller*> by_dialled(const IpAddress& peer) const {
    const std::size_t first = first_dialled_from(peer);
    std::vector<Poller*> all;
    for (std::size_t i = 0; i < pollers.size(); ++i)
      all.push_back(pollers[(first + i) % pollers.size()].get());
    std::stable_sort(all.begin(), all.end(),
                     [](const Poller* a, const Poller* b) { return a->dialled() < b->dialled(); });
    return all;
  }
  // Null: the NIC is there.
  Poller* lost_poller() const {
    const auto lost = std::find_if(pollers.begin(), pollers.end(),
                                   [](const auto& poller) { return poller->is_lost(); });
    return lost == pollers.end() ? nullptr : lost->get();
  }

  Duration link_timeout{};  // How long a comm waits for carrier before it fails.
  MemoryTimeout memory_timeout;
  Endpoint listen_endpoint;
  EndLog end_log;
  std::shared_ptr<DeathWatch> death_watch;  // Of the first poller's thread; null: none.
  std::vector<std::unique_ptr<Poller>> pollers;

 protected:
  // The poller that the first connection to a peer is dialled from: such that those which the peer
  // dials begin elsewhere, and a few each way are on as many pollers as there are.
  virtual std::size_t first_dialled_from(const IpAddress&) const { return 0; }
  // For destructors of kinds that own what pollers use. The first one's thread looks at all of
  // them, so it ends while they are there.
  void end_pollers() {
    if (!pollers.empty()) pollers.front()->stop();
    pollers.clear();
  }
};

}  // namespace ztcp::comms
