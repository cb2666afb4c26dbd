// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A started port, as the links of its queues share it: one of them looks after the carrier, a loss
// is everybody's, and the device is let go of when none of them polls it any more.
//
// Made, and in the end destroyed, by one thread; in between each link's thread calls what is
// marked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/link/device_watch.h"
#include "transport/link/dma_map.h"
#include "transport/link/dpdk_port.h"

namespace ztcp::link {

struct PortLinkOptions {
  std::string description;
  bool reconnects = false;        // A memif client: starts again when its server is gone.
  bool watches_device = false;    // PCI: gives the NIC back when it is lost.
  DmaMap* user_memory = nullptr;  // PCI of host class A; null: memory can't be mapped.
};

class OpenPort {
 public:
  OpenPort(Port its_port, PortLinkOptions its_options);
  ~OpenPort();
  OpenPort(const OpenPort&) = delete;
  OpenPort& operator=(const OpenPort&) = delete;

  // --- Any link's thread -------------------------------------------------------------------------
  // kUp unless the device was taken out or reset.
  LinkState device_state() const { return watch_ ? watch_->state() : LinkState::kUp; }
  // The link polls no more, for good; with the last one the device is let go of. The kernel waits
  // for that when a NIC is taken out, and one that was reset shall read nothing more of what lies
  // in its rings.
  void leave();
  bool is_given_back() const { return given_back_.load(std::memory_order_acquire); }
  // Keys of memory that the device may read as long as it is ours.
  void bequeath(std::vector<std::uint32_t> keys);

  // The first queue's thread asks, since it may take a firmware's answer (ice, bnxt) or a way out
  // of the virtual machine (virtio); all others know by that.
  void read_carrier();
  bool has_carrier() const { return carrier_.load(std::memory_order_relaxed); }
  std::uint32_t speed_mbps() const { return speed_mbps_.load(std::memory_order_relaxed); }

  PortLinkOptions options;
  Port port;
  Status started;
  std::shared_ptr<const wire::ReceiveSpread> spread;

 private:
  void give_back();

  std::optional<DeviceWatch> watch_;
  std::atomic<std::uint16_t> polling_;
  std::atomic<bool> given_back_{false};
  std::atomic<bool> carrier_{false};
  std::atomic<std::uint32_t> speed_mbps_{0};
  std::mutex mutex_;
  std::vector<std::uint32_t> bequeathed_;
};

}  // namespace ztcp::link
