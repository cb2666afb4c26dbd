// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rail: a device in use, with the state that all its connections share. It is a port of an RDMA
// device, or a kernel interface over which TCP carries host memory. RailSet: the rail, or the
// merged rails, that NCCL sees as one device; each connection uses all of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/comms/end_log.h"
#include "transport/comms/stranger_log.h"
#include "transport/msg/stranger_counts.h"
#include "transport/sockets/kernel/socket.h"
#include "transport/verbs/carried_log.h"
#include "transport/verbs/device.h"
#include "transport/verbs/registrations.h"

namespace ztcp::verbs {

// Peers for which a condition holds, so that it is logged once.
class PeerSet {
 public:
  // False: it was in the set before.
  bool add(const IpAddress& peer) {
    const std::lock_guard lock(mutex_);
    return peers_.insert(peer).second;
  }
  bool remove(const IpAddress& peer) {
    const std::lock_guard lock(mutex_);
    return peers_.erase(peer) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<IpAddress> peers_;
};

struct Rail {
  explicit Rail(Device found, const sockets::SocketTimes& ends_after = {})
      : device(std::move(found)),
        times(ends_after),
        pages(device),
        ends(device.name),
        address_(device.address) {}

  // At start; the next two tell the current state.
  bool is_usable() const { return device.fault.empty(); }
  bool is_dead() const { return device.opened && device.opened->is_dead.load(); }
  bool is_healthy() const {
    return is_usable() && !is_dead() && !is_port_down.load(std::memory_order_relaxed);
  }

  const Device device;
  const sockets::SocketTimes times;
  PageRegistrations pages;
  comms::EndLog ends;
  std::optional<sockets::Listening> listening;  // Since the first listen; the control thread's.
  bool is_said_to_be_deaf = false;              // Logged that it can't listen; likewise.
  msg::StrangerCounts strangers;                // Likewise.
  comms::StrangerLog stranger_log;              // Likewise.
  std::uint16_t iwarp_port = 0;                 // Where its connection manager listens; likewise.
  std::atomic<bool> is_port_down{false};        // As the last event said.

  // The address of new queue pairs. Any thread; the control thread changes it.
  PortAddress address() const {
    const std::lock_guard lock(mutex_);
    return address_;
  }
  void move_to(const PortAddress& address) {
    const std::lock_guard lock(mutex_);
    address_ = address;
  }

  // Facts that its connections have found.
  PeerSet lost_to;
  PeerSet untold_over;  // Peers to which no path over it exists.

 private:
  mutable std::mutex mutex_;
  PortAddress address_;
};

using Rails = std::vector<std::shared_ptr<Rail>>;

struct RailSet : std::enable_shared_from_this<RailSet> {
  // Rails of TCP come last, so that properties are taken from RDMA first.
  RailSet(std::string shown_as, Rails all)
      : name(std::move(shown_as)),
        rails(sorted(std::move(all))),
        registrations(pages_of(rails)),
        carried(name, places_of(rails)),
        first_(first_of(rails)) {}

  // The first usable rail, if any. Peers dial it if it is up, and it represents the set where one
  // rail must.
  Rail& first() const { return *rails[first_]; }
  // The rails over which a peer of the address family can be dialled: one for each address, those
  // with healthy NICs first.
  std::vector<Rail*> exchange_rails(bool is_v4) const {
    std::vector<Rail*> out;
    for (const bool healthy : {true, false})
      for (const auto& rail : rails) {
        const IpAddress& own = rail->device.exchange.address;
        const bool is_known = std::any_of(out.begin(), out.end(), [&](const Rail* one) {
          return one->device.exchange.address == own;
        });
        if (rail->is_usable() && rail->is_healthy() == healthy && own.is_v4() == is_v4 && !is_known)
          out.push_back(rail.get());
      }
    return out;
  }
  // Position among the rails of its kind.
  std::size_t number(std::size_t rail) const {
    return static_cast<std::size_t>(std::count_if(
        rails.begin(), rails.begin() + static_cast<std::ptrdiff_t>(rail),
        [&](const auto& one) { return one->device.is_tcp == rails[rail]->device.is_tcp; }));
  }

  // Kinds of its rails, for the operator.
  const char* kinds() const {
    if (rails.front()->device.is_tcp) return "TCP";
    return rails.back()->device.is_tcp ? "RDMA verbs and TCP" : "RDMA verbs";
  }

  const std::string name;
  const Rails rails;  // kMaxRails at most.
  Registrations registrations;
  CarriedLog carried;

 private:
  static Rails sorted(Rails rails) {
    std::stable_partition(rails.begin(), rails.end(),
                          [](const auto& rail) { return !rail->device.is_tcp; });
    return rails;
  }
  static std::vector<std::string> places_of(const Rails& rails) {
    std::vector<std::string> out;
    for (const auto& rail : rails) out.push_back(rail->device.place());
    return out;
  }
  // Null for a rail that registers nothing.
  static std::vector<PageRegistrations*> pages_of(const Rails& rails) {
    std::vector<PageRegistrations*> out;
    for (const auto& rail : rails)
      out.push_back(rail->device.is_tcp || !rail->is_usable() ? nullptr : &rail->pages);
    return out;
  }
  static std::size_t first_of(const Rails& rails) {
    const auto found =
        std::find_if(rails.begin(), rails.end(), [](const auto& one) { return one->is_usable(); });
    return found == rails.end() ? 0 : static_cast<std::size_t>(found - rails.begin());
  }

  const std::size_t first_;
};

}  // namespace ztcp::verbs
