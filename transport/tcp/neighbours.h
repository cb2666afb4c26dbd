// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which MAC address leads to which IPv4 address (ARP, RFC 826), and which neighbour leads where.
// Bounded; addresses are asked for only when a connection needs them, and again when it has reason
// to doubt the answer. Owned by a Stack, which connections wait in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/wire/arp.h"

namespace ztcp::tcp {

class Neighbours {
 public:
  static constexpr std::size_t kMaxEntries = 512;
  static constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
  static constexpr int kMaxRequests = 6;  // Doubling from kFirstRetry: gives up after 6.3 s.

  Neighbours(MacAddress mac, Ipv4Prefix address, Ipv4Address gateway)
      : mac_(mac), address_(address), gateway_(gateway) {
    entries_.reserve(kMaxEntries);
  }

  // The neighbour that leads to `destination`: itself, or the gateway. Nothing when no route does.
  std::optional<Ipv4Address> next_hop(Ipv4Address destination) const;

  // Known addresses, our own included.
  std::optional<MacAddress> find(Ipv4Address neighbour) const;
  // Starts asking, unless it is known or asked for already.
  void resolve(TimePoint now, Ipv4Address neighbour);
  // Asks again while the old answer stays in use: a connection through it got stuck.
  void confirm(TimePoint now, Ipv4Address neighbour);
  // A frame came from there. Not proof, but better than nothing: fills a gap only.
  void suggest(Ipv4Address neighbour, MacAddress mac);

  struct Change {
    Ipv4Address neighbour;
    MacAddress mac;
  };
  // An ARP packet arrived: what is known since that was not before. Sets `reply_to` when it asks
  // for us.
  std::optional<Change> on_arp(const wire::ArpPacket& packet, bool& reply_to);

  // Asks again where nobody answered. Returns one neighbour that was given up, each call another.
  std::optional<Ipv4Address> on_timers(TimePoint now);
  TimePoint next_deadline() const { return next_deadline_; }

  // The next request to send; `mac` receives where to.
  std::optional<wire::ArpPacket> take_request(MacAddress& mac);
  bool has_request() const { return requests_due_ > 0; }

 private:
  struct Entry {
    Ipv4Address address;
    MacAddress mac;
    bool known = false;
    bool asking = false;
    bool request_due = false;
    std::uint8_t requests = 0;
    TimePoint retry = kNever;
  };
  Entry* entry(Ipv4Address neighbour);
  const Entry* entry(Ipv4Address neighbour) const;
  Entry* add(Ipv4Address neighbour);
  void ask(TimePoint now, Entry& entry);
  void stop_asking(Entry& entry);
  void update_deadline();

  MacAddress mac_;
  Ipv4Prefix address_;
  Ipv4Address gateway_;
  std::vector<Entry> entries_;
  std::size_t requests_due_ = 0;
  std::size_t next_victim_ = 0;
  TimePoint next_deadline_ = kNever;
};

}  // namespace ztcp::tcp
