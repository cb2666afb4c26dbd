// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A started port, shared by the links of its queues: one of them reads the carrier, a loss concerns
// all, and the device is released when none of them polls it any more.
//
// Made and destroyed by one thread; in between each link's thread calls the functions marked so.
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
#include "transport/link/drop_reader.h"

namespace ztcp::link {

struct PortLinkOptions {
  std::string description;
  bool reconnects = false;        // A memif client: restarts when its server is gone.
  bool watches_device = false;    // PCI: releases the NIC when it is lost.
  bool counts_drops = false;      // Reads the drops that only the NIC counts.
  DmaMap* user_memory = nullptr;  // PCI of host class A; null: memory can't be mapped.
};

class OpenPort {
 public:
  OpenPort(Port its_port, PortLinkOptions its_options);
  ~OpenPort();
  OpenPort(const OpenPort&) = delete;
  OpenPort& operator=(const OpenPort&) = delete;

  // --- Any link's thread -------------------------------------------------------------------------
  //
  // kUp unless the device was removed or reset.
  LinkState device_state() const { return watch_ ? watch_->state() : LinkState::kUp; }
  // The link stops polling for good; with the last one the device is released. The kernel waits for
  // that when a NIC is removed, and a NIC that was reset must not read its rings any more.
  void leave();
  bool is_given_back() const { return given_back_.load(std::memory_order_acquire); }
  // Keys of memory that the device may read until it is released.
  void bequeath(std::vector<std::uint32_t> keys);

  // Called by the first queue's thread, since it may need an answer of the firmware (ice, bnxt) or
  // an exit from the virtual machine (virtio); the others use its result.
  // Does nothing while a reading of the drops is under way.
  void read_carrier();
  bool has_carrier() const { return carrier_.load(std::memory_order_relaxed); }
  NicDrops drops() const { return drop_reader_ ? drop_reader_->drops() : NicDrops{}; }
  std::uint32_t speed_mbps() const { return speed_mbps_.load(std::memory_order_relaxed); }

  PortLinkOptions options;
  Port port;
  Status started;
  std::shared_ptr<const wire::ReceiveSpread> spread;

 private:
  void give_back();

  void stop_counting();

  std::optional<DeviceWatch> watch_;
  std::optional<DropReader> drop_reader_;
  std::atomic<std::uint16_t> polling_;
  std::atomic<bool> given_back_{false};
  std::atomic<bool> carrier_{false};
  std::atomic<std::uint32_t> speed_mbps_{0};
  std::mutex mutex_;
  std::vector<std::uint32_t> bequeathed_;
};

}  // namespace ztcp::link
