// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One claimed NIC: its claim, its poller and what others need to know of it. Shared by the
// transport and by every comm and listener on it, so that the last of them ends it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "config/settings.h"
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
  virtual Result<std::unique_ptr<link::Link>> open(const config::Nic& nic) = 0;
  // Run on each poller thread.
  virtual void on_thread_start() {}
  virtual void on_thread_end() {}
};

// How long deregister_memory() waits for bytes in flight, per peer. Any thread.
class MemoryPatience {
 public:
  using Clock = std::chrono::steady_clock;

  void set(Duration full) { full_ = full; }
  // None for a peer that was waited for in vain just now: an abort closes many connections to it.
  Duration for_peer(Ipv4Address peer) const {
    const std::lock_guard lock(mutex_);
    const auto found = gone_.find(peer);
    return found != gone_.end() && Clock::now() - found->second < kGrudge ? Duration::zero()
                                                                          : full_;
  }
  void ran_out(Ipv4Address peer) {
    const std::lock_guard lock(mutex_);
    gone_[peer] = Clock::now();
  }

 private:
  static constexpr Duration kGrudge = std::chrono::seconds(10);

  Duration full_{};
  mutable std::mutex mutex_;
  std::map<Ipv4Address, Clock::time_point> gone_;
};

struct Nic {
  config::Nic config;
  Duration link_patience{};  // How long a comm waits for carrier before it fails.
  MemoryPatience memory_patience;
  Endpoint listen_endpoint;
  // In this order: the poller ends before the claim is given up.
  std::unique_ptr<NicClaim> claim;
  std::unique_ptr<Poller> poller;
};

}  // namespace ztcp::ustack
