// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/network/network.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <endian.h>
#include <linux/if_link.h>
#include <linux/nexthop.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "core/netlink.h"

namespace ztcp::config {
namespace {

using netlink::Attributes;
using netlink::Bytes;

Ipv4Address ipv4_of(Bytes bytes) { return {ntohl(netlink::read_as<std::uint32_t>(bytes))}; }

IpAddress ip_of(Bytes bytes, bool is_ipv6) {
  if (!is_ipv6) return ipv4_of(bytes);
  const auto halves = netlink::read_as<std::array<std::uint64_t, 2>>(bytes);
  return {be64toh(halves[0]), be64toh(halves[1])};
}

void take_link(const netlink::Message& message, Network& network) {
  const Attributes attributes = message.attributes<ifinfomsg>();
  const Attributes info = attributes.nested(IFLA_LINKINFO);
  Interface interface;
  interface.index = static_cast<std::uint32_t>(message.fixed<ifinfomsg>().ifi_index);
  interface.name = attributes.text(IFLA_IFNAME);
  interface.mtu_bytes = attributes.number(IFLA_MTU);
  interface.lower = attributes.number(IFLA_LINK);
  interface.kind = info.text(IFLA_INFO_KIND);
  // Other kinds use the same numbers for other data.
  if (interface.kind == "vlan")
    interface.vlan_id = info.nested(IFLA_INFO_DATA).number<std::uint16_t>(IFLA_VLAN_ID);
  network.interfaces.push_back(std::move(interface));
}

void take_address(const netlink::Message& message, Network& network) {
  const auto fixed = message.fixed<ifaddrmsg>();
  const auto interface =
      std::find_if(network.interfaces.begin(), network.interfaces.end(),
                   [&](const Interface& known) { return known.index == fixed.ifa_index; });
  if (interface == network.interfaces.end()) return;
  if (fixed.ifa_family != AF_INET && fixed.ifa_family != AF_INET6) return;
  const bool is_ipv6 = fixed.ifa_family == AF_INET6;
  const Attributes attributes = message.attributes<ifaddrmsg>();
  InterfaceAddress address;
  address.prefix.length = fixed.ifa_prefixlen;
  address.secondary = (fixed.ifa_flags & IFA_F_SECONDARY) != 0;
  constexpr unsigned kUnusable = IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED;
  address.is_usable = !is_ipv6 || (fixed.ifa_flags & kUnusable) == 0;
  // The kernel, NetworkManager and systemd-networkd set this flag for addresses of no other origin.
  address.is_advertised = (attributes.number(IFA_FLAGS) & IFA_F_MANAGETEMPADDR) != 0;
  // IFA_LOCAL is the local address; IFA_ADDRESS equals it, except on point-to-point links.
  if (const auto own = attributes.find(attributes.has(IFA_LOCAL) ? IFA_LOCAL : IFA_ADDRESS))
    address.prefix.address = ip_of(*own, is_ipv6);
  if (const auto info = attributes.find(IFA_CACHEINFO))
    address.valid_s = netlink::read_as<ifa_cacheinfo>(*info).ifa_valid;
  (is_ipv6 ? interface->ipv6 : interface->ipv4).push_back(address);
}

void take_nexthop(const netlink::Message& message, Network& network) {
  const Attributes attributes = message.attributes<nhmsg>();
  Nexthop nexthop;
  nexthop.id = attributes.number(NHA_ID);
  nexthop.interface = attributes.number(NHA_OIF);
  if (const auto gateway = attributes.find(NHA_GATEWAY))
    nexthop.gateway = ip_of(*gateway, message.fixed<nhmsg>().nh_family == AF_INET6);
  Bytes members = attributes.find(NHA_GROUP).value_or(Bytes());
  for (; !members.empty(); members = netlink::behind(members, sizeof(nexthop_grp)))
    nexthop.members.push_back(netlink::read_as<nexthop_grp>(members).id);
  network.nexthops.push_back(std::move(nexthop));
}

// A route may carry only the number of its nexthop object (net.ipv4.nexthop_compat_mode=0): becomes
// one route per member of the object.
void take_route_by(std::uint32_t id, Route route, Network& network) {
  const auto find = [&](std::uint32_t wanted) {
    return std::find_if(network.nexthops.begin(), network.nexthops.end(),
                        [&](const Nexthop& one) { return one.id == wanted; });
  };
  const auto object = find(id);
  if (object == network.nexthops.end()) return;
  const std::vector<std::uint32_t> alone{id};
  for (const std::uint32_t member : object->members.empty() ? alone : object->members) {
    const auto nexthop = find(member);
    if (nexthop == network.nexthops.end()) continue;
    route.interface = nexthop->interface;
    if (nexthop->gateway && nexthop->gateway->is_v4() != route.ipv6)
      route.gateway = nexthop->gateway;
    network.routes.push_back(route);
  }
}

void take_route(const netlink::Message& message, Network& network) {
  const auto fixed = message.fixed<rtmsg>();
  // Unreachable, local and broadcast routes lead nowhere.
  if (fixed.rtm_type != RTN_UNICAST || (fixed.rtm_flags & RTM_F_CLONED) != 0) return;
  const Attributes attributes = message.attributes<rtmsg>();
  Route route;
  route.ipv6 = fixed.rtm_family == AF_INET6;
  route.table = attributes.has(RTA_TABLE) ? attributes.number(RTA_TABLE) : fixed.rtm_table;
  route.destination.length = fixed.rtm_dst_len;
  // The kernel's own routes of this kind, and those of systemd-networkd and NetworkManager.
  route.is_advertised = fixed.rtm_protocol == RTPROT_RA;
  route.metric = attributes.number(RTA_PRIORITY);
  route.interface = attributes.number(RTA_OIF);
  const auto gateway = [&](const Attributes& from) {
    const auto found = from.find(RTA_GATEWAY);
    return found ? std::optional(ip_of(*found, route.ipv6)) : std::nullopt;
  };
  if (const auto found = attributes.find(RTA_DST); found && !route.ipv6)
    route.destination.address = ipv4_of(*found);
  route.gateway = gateway(attributes);
  const Bytes hops = attributes.find(RTA_MULTIPATH).value_or(Bytes());
  if (hops.empty() && route.interface == 0 && attributes.has(RTA_NH_ID))
    return take_route_by(attributes.number(RTA_NH_ID), route, network);
  if (hops.empty()) network.routes.push_back(route);
  // A route over several hops becomes one route per hop here.
  netlink::for_each_hop(hops, [&](const rtnexthop& hop, const Attributes& own) {
    route.interface = static_cast<std::uint32_t>(hop.rtnh_ifindex);
    route.gateway = gateway(own);
    network.routes.push_back(route);
  });
}

Status read_into(Network& network) {
  const auto take = [&](const netlink::Message& message) { take_message(message, network); };
  netlink::Session kernel = ZTCP_TRY(netlink::Session::open());
  ZTCP_CHECK(kernel.dump(RTM_GETLINK, ifinfomsg{}, take));
  ZTCP_CHECK(kernel.dump(RTM_GETADDR, ifaddrmsg{}, take));
  // Linux before 5.3 has none.
  if (const Status listed = kernel.dump(RTM_GETNEXTHOP, nhmsg{}, take);
      !listed && listed.error().sys_errno != EOPNOTSUPP)
    return listed;
  rtmsg routes{};
  for (const int family : {AF_INET, AF_INET6}) {
    routes.rtm_family = static_cast<unsigned char>(family);
    ZTCP_CHECK(kernel.dump(RTM_GETROUTE, routes, take));
  }
  return {};
}

}  // namespace

const Interface* Network::find(std::string_view name) const {
  for (const Interface& interface : interfaces)
    if (interface.name == name) return &interface;
  return nullptr;
}

const Interface* Network::find(std::uint32_t index) const {
  for (const Interface& interface : interfaces)
    if (interface.index == index) return &interface;
  return nullptr;
}

void take_message(const netlink::Message& message, Network& network) {
  if (message.header.nlmsg_type == RTM_NEWLINK) take_link(message, network);
  if (message.header.nlmsg_type == RTM_NEWADDR) take_address(message, network);
  if (message.header.nlmsg_type == RTM_NEWNEXTHOP) take_nexthop(message, network);
  if (message.header.nlmsg_type == RTM_NEWROUTE) take_route(message, network);
}

Result<Network, Problem> read_network() {
  Network network;
  if (const Status read = read_into(network); !read) {
    const Error& error = read.error();
    return tl::unexpected(Problem{
        "rtnetlink",
        fmt::format("the kernel did not list its interfaces, addresses and routes: {}: {}",
                    error.where,
                    error.sys_errno != 0 ? std::strerror(error.sys_errno) : describe(error.code)),
        "check whether ip route show table all gets an answer"});
  }
  return network;
}

}  // namespace ztcp::config
