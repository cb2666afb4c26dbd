// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/network/reserved.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
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

// IPv4 mapped to IPv6, so that one comparison serves both.
Ipv6Bytes mapped(Ipv4Address address) {
  Ipv6Bytes bytes{};
  bytes[10] = bytes[11] = 0xff;
  const std::uint32_t value = htonl(address.value);
  std::memcpy(&bytes[12], &value, sizeof(value));
  return bytes;
}

std::optional<Ipv6Bytes> parse_any(std::string text) {
  text = text.substr(0, text.find('%'));
  if (const auto ipv4 = parse_ipv4(text)) return mapped(*ipv4);
  Ipv6Bytes bytes{};
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

std::string shown(const Ipv6Bytes& bytes) {
  char text[INET6_ADDRSTRLEN] = "?";
  const Ipv6Bytes ipv4 = mapped({});
  if (std::equal(bytes.begin(), bytes.begin() + 12, ipv4.begin()))
    ::inet_ntop(AF_INET, &bytes[12], text, sizeof(text));
  else
    ::inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
  return text;
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

  void reserve_holder(const Ipv6Bytes& address, const std::string& why) {
    for (const Interface& interface : network_.interfaces) {
      const bool ipv4 = std::any_of(
          interface.ipv4.begin(), interface.ipv4.end(),
          [&](const InterfaceAddress& own) { return mapped(own.prefix.address) == address; });
      const bool ipv6 =
          std::find(interface.ipv6.begin(), interface.ipv6.end(), address) != interface.ipv6.end();
      if ((ipv4 || ipv6) && interface.name != "lo") reserve(interface.name, {why, false});
    }
  }

  // "client port server port"
  void find_ssh(const std::string& ssh_connection) {
    const auto words = words_of(ssh_connection);
    if (words.size() > 2)
      if (const auto address = parse_any(std::string(words[2])))
        reserve_holder(*address, fmt::format("carries this ssh session ({})", words[2]));
    for (const TcpSocket& socket : tcp_sockets(machine_))
      if (socket.state == TcpSocket::kEstablished && socket.port == kSshPort)
        reserve_holder(socket.address,
                       fmt::format("carries an ssh session ({})", shown(socket.address)));
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
