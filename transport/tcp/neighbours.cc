// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/neighbours.h"

#include <algorithm>
#include <cassert>

namespace ztcp::tcp {

Neighbours::Neighbours(MacAddress mac, IpPrefix address, IpAddress gateway, std::size_t max_users,
                       const std::array<std::uint64_t, 2>& secret, Counters& counters)
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
  if (destination.is_v4() != address_.address.is_v4()) return std::nullopt;
  // A /32 has no neighbours but its gateway, which counts as on the link.
  if (address_.contains(destination) || destination.is_link_local_v6()) return destination;
  // No router forwards packets from a link-local address (RFC 4291 section 2.5.6).
  if (gateway_ == IpAddress() || address_.address.is_link_local_v6()) return std::nullopt;
  return gateway_;
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
  if (e.requests >= kSilentRequests) {
    has_news_ = has_news_ || !e.silent;
    e.silent = true;
  }
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

std::optional<Neighbours::Request> Neighbours::take_request() {
  while (!requests_.empty()) {
    Entry& e = entries_[requests_.pop()];
    if (!e.request_due) continue;  // It was answered, or its last user has left.
    e.request_due = false;
    const bool is_unicast = e.proven && e.requests <= kUnicastRequests;
    return Request{e.address, is_unicast ? std::optional(e.mac) : std::nullopt};
  }
  return std::nullopt;
}

// --- Received packets

// Whether the claim answers the request sent: a unicast request can only be answered by its target,
// and an answer without a MAC (RFC 4861 section 7.2.4) only confirms the known one.
bool Neighbours::may_answer(const Entry& e, const Claim& claim) {
  const bool asked = e.asking && (e.requests > 1 || (e.requests == 1 && !e.request_due));
  if (!claim.is_answer || !asked) return false;
  if (e.proven && e.mac == claim.mac) return true;
  if (!claim.names_mac) return false;
  return !e.proven || (e.requests > kUnicastRequests && claim.may_replace_mac);
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

bool Neighbours::is_plausible(const Claim& claim) {
  // A group address is no host's, and this NIC is not its own neighbour.
  if (!is_station(claim.mac) || claim.mac == mac_) {
    ++counters_.arp_bad_sender;
    return false;
  }
  if (claim.host == address_.address) {
    ++counters_.arp_own_address_claimed;
    return false;
  }
  return true;
}

std::optional<Neighbours::Change> Neighbours::on_arp(TimePoint now, const wire::ArpPacket& packet,
                                                     bool& reply_to) {
  const bool for_us = address_.address == packet.target_ip;
  const bool is_request = packet.operation == wire::ArpOperation::kRequest;
  const Claim claim{
      .host = packet.sender_ip, .mac = packet.sender_mac, .is_answer = for_us && !is_request};
  reply_to = false;
  if (!is_plausible(claim)) return std::nullopt;
  reply_to = for_us && is_request;
  return hear(now, claim);
}

std::optional<Neighbours::Change> Neighbours::on_message(TimePoint now,
                                                         const wire::NeighbourMessage& message,
                                                         IpAddress source, MacAddress frame_source,
                                                         bool& reply_to) {
  const bool is_advertisement = message.is_advertisement;
  const Claim claim{.host = is_advertisement ? message.target : source,
                    .mac = message.mac.value_or(frame_source),
                    .is_answer = is_advertisement && message.is_solicited,
                    .names_mac = message.mac.has_value(),
                    .may_replace_mac = message.overrides};
  reply_to = false;
  if (!is_plausible(claim)) return std::nullopt;
  reply_to = !is_advertisement && message.target == address_.address;
  return hear(now, claim);
}

std::optional<Neighbours::Change> Neighbours::hear(TimePoint now, const Claim& claim) {
  const std::uint32_t at = index_.find(key(claim.host));
  if (at == Demux::kNone) return std::nullopt;
  Entry& e = entries_[at];
  if (!may_answer(e, claim)) {
    // A change of an unused entry is left to its next user to detect.
    if (e.first_user != kNone && claim.names_mac) on_claim(now, at, claim.mac);
    return std::nullopt;
  }
  const bool same = e.proven && e.mac == claim.mac;
  if (same && e.contested) ++counters_.arp_conflicts;
  if (!same && e.proven) ++counters_.arp_mac_changes;
  stop_asking(at);
  e.settled = now;
  e.mac = claim.mac;
  e.proven = true;
  e.silent = false;
  e.answered = now;
  has_news_ = true;
  if (same) return std::nullopt;
  return Change{at, e.mac};
}

}  // namespace ztcp::tcp
