// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One claimed NIC: its claim, and its queues with a poller each.
//
// The queues share nothing but the address: each has its own link, engine and poller. In a mesh
// what a queue sends arrives on the peer's queue of the same number, so both ends of a connection
// are on one. The queues of a PCI port are shards (link/shards.h): which one a frame comes to is
// the device's choice, and what concerns several goes between them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "transport/comms/nic.h"
#include "transport/comms/shared_places.h"
#include "transport/core/result.h"
#include "transport/link/link.h"
#include "transport/ustack/poller.h"

namespace ztcp::ustack {

// Held while a process owns a NIC; giving it up is its destructor.
class NicClaim {
 public:
  virtual ~NicClaim() = default;
};

// How NICs are had: DPDK and lock files in the product (dpdk_nics.cc), memory in tests.
class NicSource {
 public:
  virtual ~NicSource() = default;
  // kBusy when another process has it, which `holder` then names ("process 4711 (python3)").
  virtual Result<std::unique_ptr<NicClaim>> claim(const config::Nic& nic, std::string* holder) = 0;
  // A link for each of its queues.
  virtual Result<std::vector<std::unique_ptr<link::Link>>> open(const config::Nic& nic) = 0;
  // Run on each poller thread.
  virtual void on_thread_start() {}
  virtual void on_thread_end() {}
};

class Nic final : public comms::Nic {
 public:
  explicit Nic(const config::Nic& nic) : comms::Nic(nic.name), config(nic) {}
  ~Nic() override { end_pollers(); }

  PeerHandle issue_handle(const msg::Cookie& cookie) override;
  Poller& queue(std::size_t i) const { return static_cast<Poller&>(*pollers[i]); }

  const config::Nic config;
  // The pollers end before what they use, and before the claim is given up.
  std::unique_ptr<NicClaim> claim;
  std::shared_ptr<comms::SharedPlaces>
      places;  // Of its queues' sessions; null unless they are shards.

 private:
  // Where peers dial to is theirs to say, and may fill one queue alone; of two NICs that dial each
  // other one begins in the middle.
  std::size_t first_dialled_from(const IpAddress& peer) const override {
    return listen_endpoint.address <= peer ? 0 : pollers.size() / 2;
  }
};

}  // namespace ztcp::ustack
