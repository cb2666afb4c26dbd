// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/network.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace ztcp::config {
namespace {

using Bytes = std::span<const std::byte>;

template <class Value>
Value read_as(Bytes bytes) {
  Value value{};
  if (bytes.size() >= sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

std::string text_of(Bytes bytes) {
  const auto* first = reinterpret_cast<const char*>(bytes.data());
  return {first, ::strnlen(first, bytes.size())};
}

Ipv4Address ipv4_of(Bytes bytes) { return {ntohl(read_as<std::uint32_t>(bytes))}; }

// Calls visit(type, payload) for each attribute; what is cut short ends the walk.
template <class Visit>
void for_each_attribute(Bytes bytes, Visit&& visit) {
  while (bytes.size() >= sizeof(rtattr)) {
    const auto header = read_as<rtattr>(bytes);
    if (header.rta_len < sizeof(rtattr) || header.rta_len > bytes.size()) return;
    visit(static_cast<unsigned>(header.rta_type & NLA_TYPE_MASK),
          bytes.subspan(RTA_LENGTH(0), header.rta_len - RTA_LENGTH(0)));
    bytes = bytes.subspan(std::min<std::size_t>(RTA_ALIGN(header.rta_len), bytes.size()));
  }
}

// What follows the fixed part of a message.
template <class Fixed>
Bytes attributes_of(Bytes payload) {
  return payload.subspan(std::min<std::size_t>(NLMSG_ALIGN(sizeof(Fixed)), payload.size()));
}

void take_link_info(Bytes bytes, Interface& interface) {
  for_each_attribute(bytes, [&](unsigned type, Bytes value) {
    if (type == IFLA_INFO_KIND) interface.kind = text_of(value);
    if (type != IFLA_INFO_DATA) return;
    for_each_attribute(value, [&](unsigned inner, Bytes data) {
      // Other kinds number their data otherwise; the kind stands before it.
      if (interface.kind == "vlan" && inner == IFLA_VLAN_ID)
        interface.vlan_id = read_as<std::uint16_t>(data);
    });
  });
}

void take_link(Bytes payload, Network& network) {
  Interface interface;
  interface.index = static_cast<std::uint32_t>(read_as<ifinfomsg>(payload).ifi_index);
  for_each_attribute(attributes_of<ifinfomsg>(payload), [&](unsigned type, Bytes value) {
    if (type == IFLA_IFNAME) interface.name = text_of(value);
    if (type == IFLA_MTU) interface.mtu_bytes = read_as<std::uint32_t>(value);
    if (type == IFLA_LINK) interface.lower = read_as<std::uint32_t>(value);
    if (type == IFLA_LINKINFO) take_link_info(value, interface);
  });
  network.interfaces.push_back(std::move(interface));
}

void take_address(Bytes payload, Network& network) {
  const auto fixed = read_as<ifaddrmsg>(payload);
  const auto interface =
      std::find_if(network.interfaces.begin(), network.interfaces.end(),
                   [&](const Interface& known) { return known.index == fixed.ifa_index; });
  if (interface == network.interfaces.end()) return;
  InterfaceAddress address;
  address.prefix.length = fixed.ifa_prefixlen;
  address.secondary = (fixed.ifa_flags & IFA_F_SECONDARY) != 0;
  Ipv6Bytes ipv6{};
  bool local = false;
  for_each_attribute(attributes_of<ifaddrmsg>(payload), [&](unsigned type, Bytes value) {
    // IFA_LOCAL is one's own; IFA_ADDRESS the same, but for point-to-point links.
    if (fixed.ifa_family == AF_INET && (type == IFA_LOCAL || (type == IFA_ADDRESS && !local))) {
      address.prefix.address = ipv4_of(value);
      local = local || type == IFA_LOCAL;
    }
    if (fixed.ifa_family == AF_INET6 && type == IFA_ADDRESS) ipv6 = read_as<Ipv6Bytes>(value);
    if (type == IFA_CACHEINFO) address.valid_s = read_as<ifa_cacheinfo>(value).ifa_valid;
  });
  if (fixed.ifa_family == AF_INET) interface->ipv4.push_back(address);
  if (fixed.ifa_family == AF_INET6) interface->ipv6.push_back(ipv6);
}

// A route over several hops is as many routes here.
void take_hops(Bytes hops, Route route, Network& network) {
  while (hops.size() >= sizeof(rtnexthop)) {
    const auto hop = read_as<rtnexthop>(hops);
    if (hop.rtnh_len < sizeof(rtnexthop) || hop.rtnh_len > hops.size()) return;
    route.interface = static_cast<std::uint32_t>(hop.rtnh_ifindex);
    route.gateway.reset();
    for_each_attribute(hops.subspan(sizeof(rtnexthop), hop.rtnh_len - sizeof(rtnexthop)),
                       [&](unsigned type, Bytes value) {
                         if (type == RTA_GATEWAY && !route.ipv6) route.gateway = ipv4_of(value);
                       });
    network.routes.push_back(route);
    hops = hops.subspan(std::min<std::size_t>(RTNH_ALIGN(hop.rtnh_len), hops.size()));
  }
}

void take_route(Bytes payload, Network& network) {
  const auto fixed = read_as<rtmsg>(payload);
  // Unreachable, local and broadcast routes lead nowhere.
  if (fixed.rtm_type != RTN_UNICAST || (fixed.rtm_flags & RTM_F_CLONED) != 0) return;
  Route route;
  route.ipv6 = fixed.rtm_family == AF_INET6;
  route.table = fixed.rtm_table;
  route.destination.length = fixed.rtm_dst_len;
  Bytes hops;
  for_each_attribute(attributes_of<rtmsg>(payload), [&](unsigned type, Bytes value) {
    if (type == RTA_TABLE) route.table = read_as<std::uint32_t>(value);
    if (type == RTA_OIF) route.interface = read_as<std::uint32_t>(value);
    if (type == RTA_PRIORITY) route.metric = read_as<std::uint32_t>(value);
    if (type == RTA_DST && !route.ipv6) route.destination.address = ipv4_of(value);
    if (type == RTA_GATEWAY && !route.ipv6) route.gateway = ipv4_of(value);
    if (type == RTA_MULTIPATH) hops = value;
  });
  if (hops.empty())
    network.routes.push_back(route);
  else
    take_hops(hops, route, network);
}

struct Socket {
  int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd >= 0) ::close(fd);
  }
};

bool dump(int fd, std::uint16_t type, unsigned char family, Network& network) {
  struct {
    nlmsghdr header;
    rtgenmsg body;
  } request{};
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtgenmsg));
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.rtgen_family = family;
  if (::send(fd, &request, request.header.nlmsg_len, 0) < 0) return false;
  std::vector<std::byte> buffer(1U << 16U);
  while (true) {
    const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const Answer answer = take_messages({buffer.data(), static_cast<std::size_t>(count)}, network);
    if (answer != Answer::kMore) return answer == Answer::kEnd;
  }
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

Answer take_messages(Bytes datagram, Network& network) {
  while (datagram.size() >= sizeof(nlmsghdr)) {
    const auto header = read_as<nlmsghdr>(datagram);
    if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > datagram.size())
      return Answer::kError;
    const Bytes payload = datagram.subspan(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
    if (header.nlmsg_type == NLMSG_DONE) return Answer::kEnd;
    if (header.nlmsg_type == NLMSG_ERROR) return Answer::kError;
    if (header.nlmsg_type == RTM_NEWLINK) take_link(payload, network);
    if (header.nlmsg_type == RTM_NEWADDR) take_address(payload, network);
    if (header.nlmsg_type == RTM_NEWROUTE) take_route(payload, network);
    datagram =
        datagram.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  }
  return Answer::kMore;
}

tl::expected<Network, Problem> read_network() {
  Network network;
  const Socket netlink;
  // Addresses are taken up by interface, so links come first.
  if (netlink.fd < 0 || !dump(netlink.fd, RTM_GETLINK, AF_UNSPEC, network) ||
      !dump(netlink.fd, RTM_GETADDR, AF_UNSPEC, network) ||
      !dump(netlink.fd, RTM_GETROUTE, AF_INET, network) ||
      !dump(netlink.fd, RTM_GETROUTE, AF_INET6, network))
    return tl::unexpected(Problem{"rtnetlink",
                                  fmt::format("the kernel does not tell its interfaces, addresses "
                                              "and routes: {}",
                                              std::strerror(errno)),
                                  "ip route show table all shows whether it answers anybody"});
  return network;
}

}  // namespace ztcp::config
