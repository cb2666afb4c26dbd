// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/neighbours.h"

#include <algorithm>

namespace ztcp::tcp {

std::optional<Ipv4Address> Neighbours::next_hop(Ipv4Address destination) const {
  // A /32 has no neighbours but its gateway, which is then on the link whatever its number.
  if (address_.contains(destination)) return destination;
  if (gateway_ != Ipv4Address{}) return gateway_;
  return std::nullopt;
}

Neighbours::Entry* Neighbours::entry(Ipv4Address neighbour) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.address == neighbour; });
  return it == entries_.end() ? nullptr : &*it;
}

const Neighbours::Entry* Neighbours::entry(Ipv4Address neighbour) const {
  return const_cast<Neighbours*>(this)->entry(neighbour);
}

std::optional<MacAddress> Neighbours::find(Ipv4Address neighbour) const {
  if (neighbour == address_.address) return mac_;
  const Entry* found = entry(neighbour);
  if (found == nullptr || !found->known) return std::nullopt;
  return found->mac;
}

Neighbours::Entry* Neighbours::add(Ipv4Address neighbour) {
  Entry fresh;
  fresh.address = neighbour;
  if (entries_.size() < kMaxEntries) return &entries_.emplace_back(fresh);
  // Full: one that nobody waits for makes room; connections keep the address they have.
  for (std::size_t i = 0; i < kMaxEntries; ++i) {
    Entry& victim = entries_[next_victim_++ % kMaxEntries];
    if (victim.asking) continue;
    victim = fresh;
    return &victim;
  }
  return nullptr;
}

void Neighbours::ask(TimePoint now, Entry& e) {
  e.asking = true;
  if (!e.request_due) ++requests_due_;
  e.request_due = true;
  e.retry = now + kFirstRetry * (1LL << e.requests);
  ++e.requests;
  update_deadline();
}

void Neighbours::stop_asking(Entry& e) {
  if (e.request_due) --requests_due_;
  e.asking = e.request_due = false;
  e.requests = 0;
  e.retry = kNever;
  update_deadline();
}

void Neighbours::resolve(TimePoint now, Ipv4Address neighbour) {
  if (neighbour == address_.address) return;
  Entry* e = entry(neighbour);
  if (e == nullptr) e = add(neighbour);
  if (e == nullptr || e->known || e->asking) return;
  ask(now, *e);
}

void Neighbours::confirm(TimePoint now, Ipv4Address neighbour) {
  Entry* e = entry(neighbour);
  if (e == nullptr || e->asking) return;
  ask(now, *e);
}

void Neighbours::suggest(Ipv4Address neighbour, MacAddress mac) {
  if (neighbour == address_.address || entry(neighbour) != nullptr) return;
  if (Entry* e = add(neighbour)) {
    e->mac = mac;
    e->known = true;
  }
}

std::optional<Neighbours::Change> Neighbours::on_arp(const wire::ArpPacket& packet,
                                                     bool& reply_to) {
  const bool for_us = packet.target_ip == address_.address;
  reply_to = for_us && packet.operation == wire::ArpOperation::kRequest &&
             packet.sender_ip != address_.address;
  // Probes (RFC 5227) have no sender; somebody with our own address is not our neighbour.
  if (packet.sender_ip == Ipv4Address{} || packet.sender_ip == address_.address)
    return std::nullopt;
  // RFC 826: update what is known whoever was asked; learn anew only from those who ask for us.
  Entry* e = entry(packet.sender_ip);
  if (e == nullptr && reply_to) e = add(packet.sender_ip);
  if (e == nullptr) return std::nullopt;
  const bool changed = !e->known || e->mac != packet.sender_mac;
  e->mac = packet.sender_mac;
  e->known = true;
  stop_asking(*e);
  if (!changed) return std::nullopt;
  return Change{packet.sender_ip, packet.sender_mac};
}

std::optional<Ipv4Address> Neighbours::on_timers(TimePoint now) {
  if (next_deadline_ > now) return std::nullopt;
  for (Entry& e : entries_) {
    if (!e.asking || e.retry > now) continue;
    if (e.requests < kMaxRequests) {
      ask(now, e);
      continue;
    }
    stop_asking(e);
    if (!e.known) return e.address;
  }
  update_deadline();
  return std::nullopt;
}

void Neighbours::update_deadline() {
  next_deadline_ = kNever;
  for (const Entry& e : entries_) next_deadline_ = std::min(next_deadline_, e.retry);
}

std::optional<wire::ArpPacket> Neighbours::take_request(MacAddress& mac) {
  for (Entry& e : entries_) {
    if (!e.request_due) continue;
    e.request_due = false;
    --requests_due_;
    // The first try at a known address goes there alone (RFC 1122 section 2.3.2.1, 2b).
    mac = e.known && e.requests == 1 ? e.mac : kBroadcastMac;
    return wire::ArpPacket{.operation = wire::ArpOperation::kRequest,
                           .sender_mac = mac_,
                           .sender_ip = address_.address,
                           .target_mac = {},
                           .target_ip = e.address};
  }
  return std::nullopt;
}

}  // namespace ztcp::tcp
