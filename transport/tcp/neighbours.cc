// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/neighbours.h"

#include <algorithm>
#include <cassert>

namespace ztcp::tcp {

Neighbours::Neighbours(MacAddress mac, Ipv4Prefix address, Ipv4Address gateway,
                       std::size_t max_users, const std::array<std::uint64_t, 2>& secret,
                       Counters& counters)
    : mac_(mac),
      address_(address),
      gateway_(gateway),
      counters_(counters),
      entries_(max_users + kMaxIdle),
      users_(max_users),
      index_(entries_.size(), secret),
      wheel_(static_cast<std::uint32_t>(entries_.size())),
      requests_(static_cast<std::uint32_t>(entries_.size())) {
  free_.reserve(entries_.size());
  for (std::size_t i = entries_.size(); i > 0; --i)
    free_.push_back(static_cast<std::uint32_t>(i - 1));
}

std::optional<IpAddress> Neighbours::next_hop(IpAddress destination) const {
  if (!destination.is_v4()) return std::nullopt;
  // A /32 has no neighbours but its gateway, which counts as on the link.
  if (address_.contains(destination.v4())) return destination;
  if (gateway_ != Ipv4Address{}) return gateway_;
  return std::nullopt;
}

// --- Users and entries

std::uint32_t Neighbours::add(IpAddress address) {
  // Each user has one entry at most, so one of the extra entries is free or idle.
  if (free_.empty()) forget(first_idle_);
  const std::uint32_t at = free_.back();
  free_.pop_back();
  entries_[at] = Entry{};
  entries_[at].address = address;
  index_.insert(key(address), at);
  return at;
}

void Neighbours::forget(std::uint32_t at) {
  if (entries_[at].proven) end_idle(at);
  index_.remove(key(entries_[at].address));
  free_.push_back(at);
}

void Neighbours::begin_idle(std::uint32_t at) {
  Entry& e = entries_[at];
  e.previous = last_idle_;
  e.next = kNone;
  (last_idle_ == kNone ? first_idle_ : entries_[last_idle_].next) = at;
  last_idle_ = at;
}

void Neighbours::end_idle(std::uint32_t at) {
  const Entry& e = entries_[at];
  (e.previous == kNone ? first_idle_ : entries_[e.previous].next) = e.next;
  (e.next == kNone ? last_idle_ : entries_[e.next].previous) = e.previous;
}

void Neighbours::join(std::uint32_t user, IpAddress neighbour) {
  users_[user] = {};
  if (neighbour == address_.address) return;
  std::uint32_t at = index_.find(key(neighbour));
  if (at == Demux::kNone)
    at = add(neighbour);
  else if (entries_[at].first_user == kNone)
    end_idle(at);
  Entry& e = entries_[at];
  users_[user] = {.entry = at, .previous = kNone, .next = e.first_user};
  if (e.first_user != kNone) users_[e.first_user].previous = user;
  e.first_user = user;
}

void Neighbours::leave(std::uint32_t user) {
  const User u = users_[user];
  users_[user] = {};
  if (u.entry == kNone) return;
  Entry& e = entries_[u.entry];
  (u.previous == kNone ? e.first_user : users_[u.previous].next) = u.next;
  if (u.next != kNone) users_[u.next].previous = u.previous;
  if (e.first_user != kNone) return;
  if (e.asking) stop_asking(u.entry);
  if (e.proven)
    begin_idle(u.entry);
  else
    forget(u.entry);
}

std::optional<MacAddress> Neighbours::find(std::uint32_t user) const {
  const std::uint32_t at = users_[user].entry;
  if (at == kNone) return mac_;
  if (!entries_[at].proven) return std::nullopt;
  return entries_[at].mac;
}

// --- Asking

void Neighbours::resolve(TimePoint now, std::uint32_t user) {
  const std::uint32_t at = users_[user].entry;
  if (at == kNone || entries_[at].proven) return;
  Entry& e = entries_[at];
  e.wanted = true;
  // A waiting connection must not wait for a pause between requests.
  e.settled = {};
  if (e.asking && e.requests == 0)
    send_request(now, at);
  else
    ask(now, at);
}

void Neighbours::confirm(TimePoint now, std::uint32_t user) {
  const std::uint32_t at = users_[user].entry;
  if (at != kNone) ask(now, at);
}

void Neighbours::ask(TimePoint now, std::uint32_t at) {
  Entry& e = entries_[at];
  if (e.asking) return;
  e.asking = true;
  ++asking_;
  e.requests = 0;
  if (e.settled == TimePoint{} || e.settled + kPause <= now) {
    send_request(now, at);
    return;
  }
  e.retry = e.settled + kPause;
  wheel_.schedule(at, e.retry);
}

void Neighbours::send_request(TimePoint now, std::uint32_t at) {
  Entry& e = entries_[at];
  if (e.requests < UINT8_MAX) ++e.requests;
  e.request_due = true;
  requests_.push(at);
  e.asked = now;
  constexpr int kMostDoublings = 4;
  const int doublings =
      std::clamp(e.requests - (e.proven ? kUnicastRequests : 1), 0, kMostDoublings);
  e.retry = now + std::min<Duration>(kFirstRetry * (1LL << doublings), kMaxRetry);
  wheel_.cancel(at);
  wheel_.schedule(at, e.retry);
}

void Neighbours::stop_asking(std::uint32_t at) {
  Entry& e = entries_[at];
  assert(e.asking);
  --asking_;
  wheel_.cancel(at);
  e.asking = e.wanted = e.contested = e.request_due = false;
  e.requests = 0;
  e.retry = kNever;
}

void Neighbours::on_timers(TimePoint now) {
  if (asking_ == 0) return;
  wheel_.advance(now, [&](std::uint32_t at) { on_timer(now, at); });
}

void Neighbours::on_timer(TimePoint now, std::uint32_t at) {
  Entry& e = entries_[at];
  assert(e.asking);
  if (e.retry > now) {
    wheel_.schedule(at, e.retry);
  } else if (e.requests < kMaxRequests || e.wanted) {
    send_request(now, at);
  } else {
    stop_asking(at);
    e.settled = now;
  }
}

std::optional<wire::ArpPacket> Neighbours::take_request(MacAddress& mac) {
  while (!requests_.empty()) {
    Entry& e = entries_[requests_.pop()];
    if (!e.request_due) continue;  // It was answered, or its last user has left.
    e.request_due = false;
    mac = e.proven && e.requests <= kUnicastRequests ? e.mac : kBroadcastMac;
    return wire::ArpPacket{.operation = wire::ArpOperation::kRequest,
                           .sender_mac = mac_,
                           .sender_ip = address_.address,
                           .target_mac = {},
                           .target_ip = e.address.v4()};
  }
  return std::nullopt;
}

// --- Received packets

// Whether a reply from `mac` answers the request sent: a unicast request can only be answered by
// its target.
bool Neighbours::may_answer(const Entry& e, const MacAddress& mac) {
  const bool asked = e.asking && (e.requests > 1 || (e.requests == 1 && !e.request_due));
  return asked && (!e.proven || e.requests > kUnicastRequests || e.mac == mac);
}

void Neighbours::on_claim(TimePoint now, std::uint32_t at, const MacAddress& mac) {
  Entry& e = entries_[at];
  if (e.proven) {
    if (e.mac == mac) return;
    ask(now, at);
    e.contested = true;
  } else if (!e.asking) {
    ask(now, at);
  } else if (e.requests > 0 && now - e.asked >= kFirstRetry) {
    send_request(now, at);  // The neighbour may just have come up.
  }
}

std::optional<Neighbours::Change> Neighbours::on_arp(TimePoint now, const wire::ArpPacket& packet,
                                                     bool& reply_to) {
  reply_to = false;
  // A group address is no host's, and this NIC is not its own neighbour.
  if (!is_station(packet.sender_mac) || packet.sender_mac == mac_) {
    ++counters_.arp_bad_sender;
    return std::nullopt;
  }
  if (packet.sender_ip == address_.address) {
    ++counters_.arp_own_address_claimed;
    return std::nullopt;
  }
  const bool for_us = packet.target_ip == address_.address;
  reply_to = for_us && packet.operation == wire::ArpOperation::kRequest;
  const std::uint32_t at = index_.find(key(packet.sender_ip));
  if (at == Demux::kNone) return std::nullopt;
  Entry& e = entries_[at];
  const bool answered =
      for_us && packet.operation == wire::ArpOperation::kReply && may_answer(e, packet.sender_mac);
  if (!answered) {
    // A change of an unused entry is left to its next user to detect.
    if (e.first_user != kNone) on_claim(now, at, packet.sender_mac);
    return std::nullopt;
  }
  const bool same = e.proven && e.mac == packet.sender_mac;
  if (same && e.contested) ++counters_.arp_conflicts;
  if (!same && e.proven) ++counters_.arp_mac_changes;
  stop_asking(at);
  e.settled = now;
  e.mac = packet.sender_mac;
  e.proven = true;
  if (same) return std::nullopt;
  return Change{at, e.mac};
}

}  // namespace ztcp::tcp
