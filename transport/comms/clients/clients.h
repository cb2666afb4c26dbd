// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The clients of a backend: one for each comm, named by its index in the doorbell. A retired client
// is reaped at the end of the turn, so that it can retire inside an event of its own session.
//
// Belongs to a Backend; used with the poller's baton held.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/address.h"
#include "core/clock.h"
#include "core/result.h"

namespace ztcp::comms {

class Client {
 public:
  virtual ~Client() = default;
  // The doorbell was rung: the client has posts for its session.
  virtual void on_doorbell(TimePoint now) = 0;
  // The NIC was removed or reset. Called again for clients that are attached later.
  virtual void on_link_lost(TimePoint now) = 0;
  // The process that owns the NIC `peer` has ended; `why` is the text for the log.
  virtual void on_peer_died(TimePoint now, IpAddress peer, const std::string& why) = 0;
  // This process ends, and posted memory may vanish. say_goodbye() tells the peer; cut_off(), after
  // a wait for its delivery, resets the streams that are left.
  virtual void say_goodbye(TimePoint now) = 0;
  virtual void cut_off() = 0;
  // The client's entries of the statistics page are due.
  virtual void refresh_page(TimePoint) {}
};

class Clients {
 public:
  // Reserves everything up front, so that retiring and reaping a client never allocates.
  explicit Clients(std::size_t capacity) : capacity_(capacity) {
    clients_.reserve(capacity);
    free_.reserve(capacity);
    retired_.reserve(capacity);
  }

  // Takes ownership; returns the client's index. Fails with kFull.
  Result<std::size_t> attach(std::unique_ptr<Client> client);
  // reap_retired() destroys the client; its index is used again only after that.
  void retire(std::size_t index) { retired_.push_back(index); }
  // False: no client has this index (any more).
  bool on_doorbell(std::size_t index, TimePoint now) {
    if (index >= clients_.size() || clients_[index] == nullptr) return false;
    clients_[index]->on_doorbell(now);
    return true;
  }
  // `visit` may attach and retire clients. A client attached meanwhile may be visited, too.
  template <class Visit>
  void for_each(Visit&& visit) {
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < clients_.size(); ++i)
      if (clients_[i] != nullptr) visit(*clients_[i]);
  }

  // Visits at most `most` clients from index `from` on. Returns the index to go on with; 0: all
  // have been visited.
  template <class Visit>
  std::size_t visit_some(std::size_t from, std::size_t most, Visit&& visit) {
    for (; from < clients_.size() && most > 0; ++from) {
      if (clients_[from] == nullptr) continue;
      visit(*clients_[from]);
      --most;
    }
    return from < clients_.size() ? from : 0;
  }
  std::size_t count() const { return clients_.size() - free_.size(); }

  bool has_retired() const { return !retired_.empty(); }
  // Must not be called inside an event of a client.
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
