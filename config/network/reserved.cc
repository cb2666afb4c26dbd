// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/network/reserved.h"

#include <algorithm>
#include <cstring>
#include <endian.h>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "config/machine/mounts.h"
#include "config/machine/readings.h"
#include "config/machine/tcp_sockets.h"
#include "config/machine/text.h"

namespace ztcp::config {
namespace {

constexpr unsigned kSshPort = 22;
constexpr std::uint32_t kMainTable = 254;

// Without a zone: "fe80::1%eth0".
std::optional<IpAddress> parse_any(std::string_view text) {
  return parse_ip(text.substr(0, text.find('%')));
}

IpAddress address_of(const TcpSocket& socket) {
  std::uint64_t halves[2];
  std::memcpy(halves, socket.address.data(), sizeof(halves));
  return {be64toh(halves[0]), be64toh(halves[1])};
}

class Finder {
 public:
  Finder(Machine& machine, const Network& network) : machine_(machine), network_(network) {}

  Reserved find(const std::string& ssh_connection) {
    find_default_routes(false);
    find_default_routes(true);
    find_ssh(ssh_connection);
    find_mounts();
    return std::move(reserved_);
  }

 private:
  // Reserves the interface and all below it; the first reason stays, unless it yields.
  void reserve(const std::string& name, const Reservation& reservation) {
    const auto [it, inserted] = reserved_.emplace(name, reservation);
    if (!inserted) {
      if (!it->second.yields || reservation.yields) return;
      it->second = reservation;
    }
    const Interface* interface = network_.find(name);
    if (interface != nullptr && interface->kind == "vlan")
      if (const Interface* lower = network_.find(interface->lower))
        reserve(lower->name, reservation);
    for (const std::string& entry : machine_.list("/sys/class/net/" + name))
      if (entry.starts_with("lower_")) reserve(entry.substr(6), reservation);
  }

  // Clouds give every NIC a default route, in its own table or with a higher metric: traffic takes
  // the best one of the main table.
  void find_default_routes(bool ipv6) {
    std::optional<std::uint32_t> best;
    for (const Route& route : network_.routes)
      if (is_default(route, ipv6) && route.table == kMainTable)
        best = std::min(best.value_or(route.metric), route.metric);
    for (const Route& route : network_.routes) {
      const Interface* interface = network_.find(route.interface);
      if (interface == nullptr || !is_default(route, ipv6)) continue;
      if (!best || (route.table == kMainTable && route.metric == *best))
        reserve(interface->name, {"carries the default route", false});
      else
        reserve(interface->name, {fmt::format("carries {} default route of table {}, metric {}",
                                              ipv6 ? "an IPv6" : "a", route.table, route.metric),
                                  true});
    }
  }
  bool is_default(const Route& route, bool ipv6) const {
    const Interface* interface = network_.find(route.interface);
    return route.ipv6 == ipv6 && route.destination.length == 0 && interface != nullptr &&
           interface->name != "lo";
  }

  void reserve_holder(IpAddress address, const std::string& why) {
    const auto is_it = [&](const InterfaceAddress& own) { return own.prefix.address == address; };
    for (const Interface& interface : network_.interfaces) {
      const bool has = std::any_of(interface.ipv4.begin(), interface.ipv4.end(), is_it) ||
                       std::any_of(interface.ipv6.begin(), interface.ipv6.end(), is_it);
      if (has && interface.name != "lo") reserve(interface.name, {why, false});
    }
  }

  // "client port server port"
  void find_ssh(const std::string& ssh_connection) {
    const auto words = words_of(ssh_connection);
    if (words.size() > 2)
      if (const auto address = parse_any(words[2]))
        reserve_holder(*address, fmt::format("carries this ssh session ({})", words[2]));
    for (const TcpSocket& socket : tcp_sockets(machine_))
      if (socket.state == TcpSocket::kEstablished && socket.port == kSshPort)
        reserve_holder(address_of(socket),
                       fmt::format("carries an ssh session ({})", to_string(address_of(socket))));
  }

  // NFS, CIFS and the like have an option `addr`; others name their servers only in the source:
  // "10.0.0.5@o2ib:/scratch", "10.0.0.5:6789:/".
  void find_mounts() {
    for (const Mount& mount : mounts_of(machine_)) {
      reserve_way_to(std::string(mount.option("addr")), mount.folder);
      if (mount.source.starts_with("/dev/")) continue;
      std::string servers = mount.source;
      for (char& c : servers)
        if (std::string_view(",:/@").find(c) != std::string_view::npos) c = ' ';
      for (const std::string_view server : words_of(servers))
        reserve_way_to(std::string(server), mount.folder);
    }
  }
  void reserve_way_to(const std::string& server, const std::string& folder) {
    const auto address = parse_ipv4(server);
    if (!address) return;
    if (const Interface* interface = way_to(*address))
      reserve(interface->name,
              {fmt::format("leads to {}, which serves {}", server, folder), false});
  }

  // Takes the longest prefix of the main table, then the lowest metric.
  const Interface* way_to(Ipv4Address address) const {
    const Route* best = nullptr;
    for (const Route& route : network_.routes) {
      if (route.ipv6 || route.table != kMainTable || !route.destination.contains(address)) continue;
      const bool longer = best != nullptr && route.destination.length > best->destination.length;
      const bool cheaper = best != nullptr &&
                           route.destination.length == best->destination.length &&
                           route.metric < best->metric;
      if (best == nullptr || longer || cheaper) best = &route;
    }
    return best == nullptr ? nullptr : network_.find(best->interface);
  }

  Machine& machine_;
  const Network& network_;
  Reserved reserved_;
};

}  // namespace

Reserved reserved_interfaces(Machine& machine, const Network& network,
                             const std::string& ssh_connection) {
  return Finder(machine, network).find(ssh_connection);
}

}  // namespace ztcp::config
