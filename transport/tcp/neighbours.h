// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which MAC address leads to which IP address, and which neighbour leads where. Asks by ARP (RFC
// 826) and so knows IPv4 alone; no route leads to any other address.
//
// Only an answer to a request of our own is proof. All else that names a MAC (a request, an
// announcement, the frame that a SYN came in) is a claim: it may make us ask, and changes nothing
// by itself. A proven neighbour is asked where it was known to be; when it stays silent there the
// question goes to everybody, and who answers has taken its place. Until then the old answer stays
// in use. These are the states of RFC 4861 section 7.3: not proven, not asked: STALE; proven:
// REACHABLE; proven and asked: PROBE. Reason to ask is what RFC 1122 section 2.3.2.1 calls advice
// from above: a connection that hears nothing.
//
// Each connection is a user of its neighbour from its first to its last moment, and entries are
// made for users alone: strangers' frames cost a lookup and no memory, and never push out what is
// in use. Entries that are proven and without users are remembered while there is room.
//
// Owned by a Stack. Users are named by the index of their connection.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/tcp/demux.h"
#include "transport/tcp/stack.h"
#include "transport/tcp/timer_wheel.h"
#include "transport/tcp/work_queue.h"
#include "transport/wire/arp.h"

namespace ztcp::tcp {

class Neighbours {
 public:
  static constexpr std::size_t kMaxIdle = 256;
  static constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
  // Doubling up to this, the rate that RFC 1122 section 2.3.2.1 allows for good.
  static constexpr Duration kMaxRetry = std::chrono::seconds(1);
  // To the known address alone, before everybody is asked: one may get lost.
  static constexpr int kUnicastRequests = 2;
  // Of whom nobody waits for; those that are waited for are asked until they answer.
  static constexpr int kMaxRequests = 6;
  // What was just answered is not asked again for doubts or claims, be there ever so many.
  static constexpr Duration kPause = std::chrono::milliseconds(500);

  // `secret` keeps strangers from choosing addresses that collide.
  Neighbours(MacAddress mac, Ipv4Prefix address, Ipv4Address gateway, std::size_t max_users,
             const std::array<std::uint64_t, 2>& secret, Counters& counters);

  // The neighbour that leads to `destination`: itself, or the gateway. Nothing when no route does.
  std::optional<IpAddress> next_hop(IpAddress destination) const;

  // Pairs: from join() to leave() the other calls may name the user.
  void join(std::uint32_t user, IpAddress neighbour);
  void leave(std::uint32_t user);
  // Where its frames go; nothing while that is not proven.
  std::optional<MacAddress> find(std::uint32_t user) const;
  // The user waits for that. Asks until there is an answer.
  void resolve(TimePoint now, std::uint32_t user);
  // The user has reason to doubt the answer, or to look for one. Asks for a while.
  void confirm(TimePoint now, std::uint32_t user);

  struct Change {
    std::uint32_t entry;
    MacAddress mac;
  };
  // An ARP packet arrived: what is proven since that was not before. Sets `reply_to` when it asks
  // for us.
  std::optional<Change> on_arp(TimePoint now, const wire::ArpPacket& packet, bool& reply_to);
  // Calls fn(user) for each connection that a change concerns. fn neither joins nor leaves.
  template <class Fn>
  void for_each_user(const Change& change, Fn&& fn) const {
    for (std::uint32_t user = entries_[change.entry].first_user; user != kNone;
         user = users_[user].next)
      fn(user);
  }

  // Asks again where nobody answered.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return asking_ == 0 ? kNever : wheel_.next_deadline(); }

  // The next request to send; `mac` receives where to. May have none although has_request().
  std::optional<wire::ArpPacket> take_request(MacAddress& mac);
  bool has_request() const { return !requests_.empty(); }

  // Of the table; those in use are among them.
  std::size_t size() const { return index_.size(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Entry {
    IpAddress address;
    MacAddress mac;  // Once proven.
    bool proven = false;
    bool asking = false;
    bool wanted = false;     // Somebody can't begin without.
    bool contested = false;  // Somebody else claimed the address since it was last proven.
    bool request_due = false;
    std::uint8_t requests = 0;  // Since asking began.
    TimePoint asked{};
    TimePoint retry = kNever;
    TimePoint settled{};  // When asking last ended.
    std::uint32_t first_user = kNone;
    std::uint32_t previous = kNone;  // In the line of those without users, or free.
    std::uint32_t next = kNone;
  };
  struct User {
    std::uint32_t entry = kNone;  // kNone: goes to our own address.
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
  };

  static Demux::Key key(IpAddress address) { return Demux::key({address, 0}, 0); }
  std::uint32_t add(IpAddress address);
  void forget(std::uint32_t at);
  void begin_idle(std::uint32_t at);
  void end_idle(std::uint32_t at);
  void ask(TimePoint now, std::uint32_t at);
  void send_request(TimePoint now, std::uint32_t at);
  void stop_asking(std::uint32_t at);
  void on_timer(TimePoint now, std::uint32_t at);
  static bool may_answer(const Entry& e, const MacAddress& mac);
  void on_claim(TimePoint now, std::uint32_t at, const MacAddress& mac);

  MacAddress mac_;
  Ipv4Prefix address_;
  Ipv4Address gateway_;
  Counters& counters_;
  std::vector<Entry> entries_;
  std::vector<User> users_;
  std::vector<std::uint32_t> free_;
  Demux index_;
  TimerWheel wheel_;
  WorkQueue requests_;
  std::size_t asking_ = 0;
  std::uint32_t first_idle_ = kNone;  // The one that goes first.
  std::uint32_t last_idle_ = kNone;
};

}  // namespace ztcp::tcp
