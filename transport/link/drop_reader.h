// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads the drops of a NIC twice a second, on a thread of its own: drivers that ask the NIC's
// firmware or the host (bnxt, ena, hns3; iavf by its mailbox, vmxnet3 by an exit from the virtual
// machine) wait for the answer, and others (e1000, i40e, ice, ixgbe) read dozens of registers over
// PCIe. A lane would stand still meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/clock.h"
#include "transport/link/nic_drops.h"

namespace ztcp::link {

class DropReader {
 public:
  static constexpr Duration kInterval = std::chrono::milliseconds(500);
  // Asks the driver; nothing: it does not answer now.
  using Read = std::function<std::optional<NicDrops>()>;

  // Without a thread, drops() stays zero.
  explicit DropReader(Read read, Duration interval = kInterval);
  ~DropReader() { stop(); }
  DropReader(const DropReader&) = delete;
  DropReader& operator=(const DropReader&) = delete;

  // Waits for a reading under way; none follows.
  void stop();
  // The same without a wait, once DPDK has panicked: that may have been in a reading, which never
  // ends then.
  void abandon() {
    if (thread_.joinable()) thread_.detach();
  }

  // --- Any thread --------------------------------------------------------------------------------
  // Since the first reading. Never waits.
  NicDrops drops() const;
  // A driver's control functions may not run at the same time. Not owned: a reading is under way.
  std::unique_lock<std::mutex> try_to_control() const;

 private:
  struct State;
  static void run(State& state, Duration interval);

  // Shared with a thread that was abandoned.
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace ztcp::link
