// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Who uses an engine: one client for each comm, named by an index that its doorbell has, too. A
// client that is done with is reaped at the end of the turn, so that it may say so from inside an
// event of its own session.
//
// Owned by a Poller, used with the baton held.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"

namespace ztcp::comms {

class Client {
 public:
  virtual ~Client() = default;
  // The doorbell was rung: it has posts for the engine.
  virtual void on_doorbell(TimePoint now) = 0;
  // The NIC was taken out or reset; said again for clients that are attached later.
  virtual void on_link_lost(TimePoint now) = 0;
  // The process that owns the NIC `peer` is gone, says `why`.
  virtual void on_peer_died(TimePoint now, IpAddress peer, const std::string& why) = 0;
  // The process ends, and memory that was posted may be going: tells the peer; then, when it was
  // waited for that, resets what is left.
  virtual void say_goodbye(TimePoint now) = 0;
  virtual void cut_off() = 0;
};

class Clients {
 public:
  // All the memory it will ever need itself: who is done with is reaped, come what may.
  explicit Clients(std::size_t capacity) : capacity_(capacity) {
    clients_.reserve(capacity);
    free_.reserve(capacity);
    retired_.reserve(capacity);
  }

  // Takes ownership; returns the client's index. Fails with kFull.
  Result<std::size_t> attach(std::unique_ptr<Client> client);
  // Destroyed by reap_retired(); the index is another's only then.
  void retire(std::size_t index) { retired_.push_back(index); }
  // False: nobody is there, or not any more.
  bool on_doorbell(std::size_t index, TimePoint now) {
    if (index >= clients_.size() || clients_[index] == nullptr) return false;
    clients_[index]->on_doorbell(now);
    return true;
  }
  // Visits may attach and retire; who is attached meanwhile is visited, too.
  template <class Visit>
  void for_each(Visit&& visit) {
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < clients_.size(); ++i)
      if (clients_[i] != nullptr) visit(*clients_[i]);
  }

  bool has_retired() const { return !retired_.empty(); }
  // Not from inside a client's events.
  void reap_retired();
  bool is_empty() const { return free_.size() == clients_.size(); }
  void clear();

 private:
  const std::size_t capacity_;
  std::vector<std::unique_ptr<Client>> clients_;  // By index; null: free.
  std::vector<std::size_t> free_;
  std::vector<std::size_t> retired_;
};

}  // namespace ztcp::comms
