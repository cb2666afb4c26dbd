// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One claimed NIC: its claim, and its lanes with a poller each.
//
// The lanes share nothing but the address: each has its own link, engine and poller. A frame that a
// lane of a mesh sends arrives at the peer's lane of the same number, so both ends of a connection
// are on one. The lanes of a PCI port are shards (link/shards.h): the device chooses the lane that
// a frame comes to, and frames that concern several lanes go between them.
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
  // A link for each of its lanes.
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

  const config::Nic config;
  // The pollers end before what they use, and before the claim is given up.
  std::unique_ptr<NicClaim> claim;
  // Of its lanes' sessions; null unless they are shards.
  std::shared_ptr<comms::SharedPlaces> places;

 private:
  // Peers choose the lane that they dial, and may fill one alone; of two NICs that dial each other
  // one begins in the middle.
  std::size_t first_dialled_from(const IpAddress& peer) const override {
    return listen_endpoint.address <= peer ? 0 : pollers.size() / 2;
  }
};

}  // namespace ztcp::ustack
