// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Maps IP addresses to MAC addresses, and destinations to the neighbour that leads there: by ARP
// (RFC 826) for an IPv4 address of our own, by neighbour discovery (RFC 4861) for an IPv6 one.
// There is no route to an address of the other family.
//
// Only an answer to a request of our own is proof. Any other packet that names a MAC (a request, an
// announcement, the frame that a SYN came in) is a claim: it may cause a request, and changes
// nothing by itself. A proven neighbour is asked at its known address first; if it stays silent,
// the request goes to all (IPv6: to the group of the neighbour's address), and the host that
// answers takes its place. Until then the old answer stays in use. These are the states of RFC 4861
// section 7.3: not proven, not asked: STALE; proven: REACHABLE; proven and asked: PROBE. A request
// is caused by what RFC 1122 section 2.3.2.1 calls advice from above: a connection that receives
// nothing.
//
// Each connection is a user of its neighbour all its life, and entries are made for users alone:
// frames from strangers cost a lookup and no memory, and never evict an entry in use. Proven
// entries without users are kept while there is room.
//
// Owned by a Stack. A user is identified by the index of its connection.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/clock.h"
#include "transport/tcp/demux.h"
#include "transport/tcp/stack.h"
#include "transport/tcp/timer_wheel.h"
#include "transport/tcp/work_queue.h"
#include "transport/wire/arp.h"
#include "transport/wire/ndp.h"

namespace ztcp::tcp {

class Neighbours {
 public:
  static constexpr std::size_t kMaxIdle = 256;
  static constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
  // Upper bound of the doubling, the rate that RFC 1122 section 2.3.2.1 permits without end.
  static constexpr Duration kMaxRetry = std::chrono::seconds(1);
  // To the known address, before broadcasting: one may get lost.
  static constexpr int kUnicastRequests = 2;
  // For a neighbour that no connection waits for; otherwise requests go on until an answer.
  static constexpr int kMaxRequests = 6;
  // A neighbour that leaves so many unanswered is silent (RFC 4861 section 10).
  static constexpr int kSilentRequests = 3;
  // An entry that was just answered is not asked again for this long, however many claims arrive.
  static constexpr Duration kPause = std::chrono::milliseconds(500);

  // `secret` keeps attackers from choosing addresses that collide.
  Neighbours(MacAddress mac, IpPrefix address, IpAddress gateway, std::size_t max_users,
             const std::array<std::uint64_t, 2>& secret, Counters& counters);

  // Before anything was sent from the address before.
  void set_address(IpPrefix address) { address_ = address; }
  void set_gateway(IpAddress gateway) { gateway_ = gateway; }
  // The next hop to `destination`: itself, or the gateway. Nothing: there is no route.
  std::optional<IpAddress> next_hop(IpAddress destination) const;

  // To be called in pairs: between join() and leave() the other calls accept the user.
  void join(std::uint32_t user, IpAddress neighbour);
  void leave(std::uint32_t user);
  // Destination of the user's frames; nothing while the neighbour is not proven.
  std::optional<MacAddress> find(std::uint32_t user) const;
  // The neighbour has not answered the last requests.
  bool is_silent(std::uint32_t user) const {
    return users_[user].entry != kNone && entries_[users_[user].entry].silent;
  }
  // When the neighbour last answered; TimePoint::min(): never.
  TimePoint answered(std::uint32_t user) const {
    return users_[user].entry != kNone ? entries_[users_[user].entry].answered : TimePoint::min();
  }
  // Whether the neighbour has users besides this one.
  bool has_other_users(std::uint32_t user) const {
    const std::uint32_t at = users_[user].entry;
    return at != kNone && (entries_[at].first_user != user || users_[user].next != kNone);
  }
  // Whether a neighbour fell silent or answered since the last call.
  bool take_news() { return std::exchange(has_news_, false); }
  // Makes the users of from's neighbour users of to's, if may_move(user).
  template <class Fn>
  void move_users(std::uint32_t from, std::uint32_t to, Fn&& may_move) {
    const IpAddress neighbour = entries_[users_[to].entry].address;
    entries_[users_[from].entry].wanted = false;
    std::uint32_t next = kNone;
    for (std::uint32_t user = entries_[users_[from].entry].first_user; user != kNone; user = next) {
      next = users_[user].next;
      if (user == from || !may_move(user)) continue;
      leave(user);
      join(user, neighbour);
    }
  }
  // The user waits for the address. Asks until there is an answer.
  void resolve(TimePoint now, std::uint32_t user);
  // The user doubts the answer, or would like one. Asks for a while.
  void confirm(TimePoint now, std::uint32_t user);

  struct Change {
    std::uint32_t entry;
    MacAddress mac;
  };
  // Takes an ARP packet; returns the entry that it proved or changed. Sets `reply_to` when it asks
  // for our address.
  std::optional<Change> on_arp(TimePoint now, const wire::ArpPacket& packet, bool& reply_to);
  // The same for a message of neighbour discovery, from `source` in a frame from `frame_source`.
  std::optional<Change> on_message(TimePoint now, const wire::NeighbourMessage& message,
                                   IpAddress source, MacAddress frame_source, bool& reply_to);
  // Calls fn(user) for each connection that a change concerns. fn must not join or leave.
  template <class Fn>
  void for_each_user(const Change& change, Fn&& fn) const {
    for (std::uint32_t user = entries_[change.entry].first_user; user != kNone;
         user = users_[user].next)
      fn(user);
  }

  // Repeats requests without an answer.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return asking_ == 0 ? kNever : wheel_.next_deadline(); }

  struct Request {
    IpAddress target;
    std::optional<MacAddress> to;  // Nothing: to all hosts, or to the target's group.
  };
  // The next request to send. May be nothing although has_request().
  std::optional<Request> take_request();
  bool has_request() const { return !requests_.empty(); }

  // Size of the table, entries in use included.
  std::size_t size() const { return index_.size(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Entry {
    IpAddress address;
    MacAddress mac;  // Once proven.
    bool proven = false;
    bool asking = false;
    bool wanted = false;     // A user waits for the address.
    bool contested = false;  // Another host has claimed the address since it was last proven.
    bool request_due = false;
    bool silent = false;
    std::uint8_t requests = 0;  // Number sent since asking began.
    TimePoint asked{};
    TimePoint retry = kNever;
    TimePoint settled{};  // When asking last ended.
    TimePoint answered = TimePoint::min();
    std::uint32_t first_user = kNone;
    std::uint32_t previous = kNone;  // List of unused entries, oldest first.
    std::uint32_t next = kNone;
  };
  struct User {
    std::uint32_t entry = kNone;  // kNone: the user's destination is our own address.
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
  struct Claim {
    IpAddress host;
    MacAddress mac;
    bool is_answer = false;       // To a request of ours.
    bool names_mac = true;        // False: `mac` is the frame's source.
    bool may_replace_mac = true;  // Where another is proven (RFC 4861: the override flag).
  };
  // Counts a packet that no honest neighbour sends. True: `claim` is another host's.
  bool is_plausible(const Claim& claim);
  std::optional<Change> hear(TimePoint now, const Claim& claim);
  static bool may_answer(const Entry& e, const Claim& claim);
  void on_claim(TimePoint now, std::uint32_t at, const MacAddress& mac);

  MacAddress mac_;
  IpPrefix address_;
  IpAddress gateway_;
  Counters& counters_;
  bool has_news_ = false;
  std::vector<Entry> entries_;
  std::vector<User> users_;
  std::vector<std::uint32_t> free_;
  Demux index_;
  TimerWheel wheel_;
  WorkQueue requests_;
  std::size_t asking_ = 0;
  std::uint32_t first_idle_ = kNone;  // The next one to be evicted.
  std::uint32_t last_idle_ = kNone;
};

}  // namespace ztcp::tcp
