// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One claimed NIC: its claim, its queues with a poller each, and what others need to know of it.
// Shared by the transport and by every comm and listener on it, so that the last of them ends it.
//
// The queues share nothing but the address: each has its own link, engine and poller, and a
// connection stays on the one that it was dialled from. What a queue sends arrives on the peer's
// queue of the same number, so both ends of a connection are on one.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config/settings.h"
#include "transport/core/result.h"
#include "transport/link/link.h"
#include "transport/ustack/death_watch.h"
#include "transport/ustack/end_log.h"
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

// How long deregister_memory() waits for bytes in flight. An abort closes many connections one by
// one, to peers of which some or all are gone, so what was waited in vain just now is not waited
// again: not for the same peer, and for others only while the sum stays below the full patience.
// Any thread.
class MemoryPatience {
 public:
  using Clock = std::chrono::steady_clock;
  // Whatever went before: what a living peer needs to acknowledge what a NIC still has to send.
  static constexpr Duration kLeast = std::chrono::milliseconds(20);

  void set(Duration full) { full_ = full; }
  Duration for_peer(IpAddress peer) const {
    const std::lock_guard lock(mutex_);
    const auto found = gone_.find(peer);
    if (found != gone_.end() && is_recent(found->second)) return Duration::zero();
    const Duration left = is_recent(last_vain_) ? full_ - lost_ : full_;
    return std::max(left, std::min(full_, kLeast));
  }
  // `waited` for nothing.
  void ran_out(IpAddress peer, Duration waited) {
    const std::lock_guard lock(mutex_);
    lost_ = is_recent(last_vain_) ? lost_ + waited : waited;
    gone_[peer] = last_vain_ = Clock::now();
  }

 private:
  static constexpr Duration kGrudge = std::chrono::seconds(10);
  static bool is_recent(Clock::time_point when) {
    return when != Clock::time_point{} && Clock::now() - when < kGrudge;
  }

  Duration full_{};
  mutable std::mutex mutex_;
  std::map<IpAddress, Clock::time_point> gone_;
  Clock::time_point last_vain_{};
  Duration lost_{};  // Since no wait was in vain for kGrudge.
};

struct Nic {
  explicit Nic(const config::Nic& nic) : config(nic), end_log(nic.name) {}
  // The first poller's thread looks at all of them, so it ends while they are there.
  ~Nic() {
    if (!pollers.empty()) pollers.front()->stop();
  }
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // For one more connection: the queue that has the fewest of those dialled here. Where peers dial
  // to is theirs to say.
  Poller& choose_queue() const {
    return **std::min_element(pollers.begin(), pollers.end(), [](const auto& a, const auto& b) {
      return a->dialled() < b->dialled();
    });
  }
  // Null: the NIC is there.
  const Poller* lost_queue() const {
    const auto lost = std::find_if(pollers.begin(), pollers.end(),
                                   [](const auto& poller) { return poller->link_is_lost(); });
    return lost == pollers.end() ? nullptr : lost->get();
  }

  const config::Nic config;
  Duration link_patience{};  // How long a comm waits for carrier before it fails.
  MemoryPatience memory_patience;
  Endpoint listen_endpoint;
  EndLog end_log;
  // In this order: the pollers end before what they use, and before the claim is given up.
  std::unique_ptr<NicClaim> claim;
  std::shared_ptr<DeathWatch> death_watch;  // May be null.
  std::vector<std::unique_ptr<Poller>> pollers;
};

}  // namespace ztcp::ustack
