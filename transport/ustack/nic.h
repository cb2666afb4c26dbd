// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One claimed NIC: its claim, and its lanes with a poller each.
//
// The lanes share nothing but the address: each has its own link, engine and poller. In a mesh, a
// frame arrives at the peer's lane of the same number as the sending lane, so both ends of a
// connection are on lanes of one number. The lanes of a PCI port are shards (link/shards.h): the
// device chooses the lane that receives a frame, and the lanes hand each other frames that belong
// to another lane.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/nic_slot.h"
#include "core/result.h"
#include "transport/comms/nic.h"
#include "transport/comms/shared_places.h"
#include "transport/link/link.h"

namespace ztcp::ustack {

// Held while this process owns a NIC. The destructor gives the NIC up.
class NicClaim {
 public:
  virtual ~NicClaim() = default;
  // The part of the NIC.
  virtual NicSlot slot() const { return {}; }
};

// Claims and opens NICs: with lock files and DPDK in the product (dpdk_nics.cc), in memory in
// tests.
class NicSource {
 public:
  virtual ~NicSource() = default;
  // kBusy when another process has the NIC, or as many as may share it; `holder` then names them
  // ("process 4711 (python3)").
  virtual Result<std::unique_ptr<NicClaim>> claim(const config::Nic& nic, std::string* holder) = 0;
  // Returns a link for each lane.
  virtual Result<std::vector<std::unique_ptr<link::Link>>> open(const config::Nic& nic,
                                                                const NicClaim& claim) = 0;
  // Folder for the socket by which frames are captured; empty: they can't be.
  virtual std::string run_dir() const { return {}; }
  // Called on each poller thread.
  virtual void on_thread_start() {}
  virtual void on_thread_end() {}
};

class Nic final : public comms::Nic {
 public:
  explicit Nic(const config::Nic& nic) : comms::Nic(nic.name), config(nic) {}
  ~Nic() override { end_pollers(); }

  PeerHandle issue_handle(const msg::Cookie& cookie) override;

  config::Nic config;  // Its address, if "auto", is replaced by the one taken, before any use.
  // ~Nic() ends the pollers before these members, which they use, are destroyed.
  std::unique_ptr<NicClaim> claim;
  // Maps sessions to lanes and balances them; null unless the lanes are shards.
  std::shared_ptr<comms::SharedPlaces> places;

 private:
  // If two NICs dial each other, one starts at the first lane and one at the middle lane, so
  // that their connections use different lanes.
  std::size_t first_dialled_from(const IpAddress& peer) const override {
    return listen_endpoint.address <= peer ? 0 : pollers.size() / 2;
  }
};

}  // namespace ztcp::ustack
