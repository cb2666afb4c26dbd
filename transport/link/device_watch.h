// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DPDK's notifications, from threads of its own, that a NIC is lost: it is about to be removed, or
// it was reset by the host of a virtual function or by a firmware that did not recover.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "transport/link/link.h"

namespace ztcp::link {

class DeviceWatch {
 public:
  // Watches the device of this name ("0000:3b:00.0") and its port until destroyed.
  DeviceWatch(std::string device, std::uint16_t port);
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  // kUp while there was no notification. The first loss stays the reason.
  LinkState state() const { return state_.load(std::memory_order_acquire); }
  bool is_lost() const { return ztcp::is_lost(state()); }
  // To be called before the port is closed: its number may be reused afterwards.
  void forget_port();

 private:
  std::string device_;
  std::uint16_t port_;
  bool watches_port_ = true;
  std::atomic<LinkState> state_{LinkState::kUp};
};

}  // namespace ztcp::link
