// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/network_text.h"

#include <arpa/inet.h>
#include <array>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <fmt/format.h>

#include "tools/ztcp_setup/attributes.h"

namespace ztcp::setup {
namespace {

// The last attribute of each type wins, as in the kernel.
template <std::size_t Count>
std::array<const nlattr*, Count> attributes_of(const nlmsghdr& message, std::size_t header) {
  std::array<const nlattr*, Count> found{};
  for_each_attribute(message, header, [&](const nlattr* attribute) {
    const auto type = type_of(attribute);
    if (type < Count) found[type] = attribute;
  });
  return found;
}

std::string address_text(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? "?" : text.data();
}
std::string address_text(int family, const nlattr* attribute) {
  const std::size_t size = family == AF_INET6 ? sizeof(in6_addr) : sizeof(in_addr);
  if (payload_size(attribute) < size) return "?";
  return address_text(family, payload_of(attribute));
}

std::string link_text(unsigned index) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(index, name.data()) == nullptr ? fmt::format("if{}", index) : name.data();
}

std::string via_text(int family, const nlattr* gateway, const nlattr* via) {
  if (gateway != nullptr) return " via " + address_text(family, gateway);
  if (via == nullptr) return {};
  // Another family's gateway: the family, then its address.
  const auto* route_via = static_cast<const rtvia*>(payload_of(via));
  return fmt::format(
      " via {}{}", route_via->rtvia_family == AF_INET6 ? "inet6 " : "",
      address_text(route_via->rtvia_family, static_cast<const void*>(route_via->rtvia_addr)));
}

std::string nexthops_text(int family, const nlattr* multipath) {
  std::string text;
  auto left = static_cast<int>(payload_size(multipath));
  const auto* hop = static_cast<const rtnexthop*>(payload_of(multipath));
  while (RTNH_OK(hop, left)) {
    const nlattr* gateway = nullptr;
    const nlattr* via = nullptr;
    for_each_attribute(hop + 1, hop->rtnh_len - sizeof(*hop), [&](const nlattr* attribute) {
      if (type_of(attribute) == RTA_GATEWAY) gateway = attribute;
      if (type_of(attribute) == RTA_VIA) via = attribute;
    });
    text += fmt::format(" nexthop{} dev {} weight {}", via_text(family, gateway, via),
                        link_text(static_cast<unsigned>(hop->rtnh_ifindex)), hop->rtnh_hops + 1);
    left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len));
    hop = RTNH_NEXT(hop);
  }
  return text;
}

}  // namespace

std::string address_command(const nlmsghdr& message, const std::string& link) {
  const auto& header = *static_cast<const ifaddrmsg*>(payload_of(&message));
  const auto found = attributes_of<IFA_MAX + 1>(message, sizeof(header));
  const nlattr* remote = found[IFA_ADDRESS];
  const nlattr* local = found[IFA_LOCAL] != nullptr ? found[IFA_LOCAL] : remote;
  if (local == nullptr) return {};
  const std::string own = address_text(header.ifa_family, local);
  const std::string peer = remote == nullptr ? own : address_text(header.ifa_family, remote);
  std::string command =
      own == peer ? fmt::format("ip address add {}/{}", own, header.ifa_prefixlen)
                  : fmt::format("ip address add {} peer {}/{}", own, peer, header.ifa_prefixlen);
  if (found[IFA_BROADCAST] != nullptr)
    command += " broadcast " + address_text(header.ifa_family, found[IFA_BROADCAST]);
  if (header.ifa_scope != RT_SCOPE_UNIVERSE) command += fmt::format(" scope {}", header.ifa_scope);
  if (found[IFA_LABEL] != nullptr && header.ifa_family == AF_INET &&
      text_of(found[IFA_LABEL]) != link)
    command += fmt::format(" label {}", text_of(found[IFA_LABEL]));
  const std::uint32_t flags =
      found[IFA_FLAGS] != nullptr ? number_of(found[IFA_FLAGS]) : header.ifa_flags;
  if ((flags & IFA_F_NOPREFIXROUTE) != 0) command += " noprefixroute";
  return command + " dev " + link;
}

std::string neighbour_command(const nlmsghdr& message, const std::string& link) {
  const auto& header = *static_cast<const ndmsg*>(payload_of(&message));
  const auto found = attributes_of<NDA_MAX + 1>(message, sizeof(header));
  if (found[NDA_DST] == nullptr) return {};
  std::string command = "ip neighbour add " + address_text(header.ndm_family, found[NDA_DST]);
  if (found[NDA_LLADDR] != nullptr) {
    const auto* bytes = static_cast<const unsigned char*>(payload_of(found[NDA_LLADDR]));
    command += fmt::format(" lladdr {:02x}",
                           fmt::join(bytes, bytes + payload_size(found[NDA_LLADDR]), ":"));
  }
  return command + " nud permanent dev " + link;
}

std::string route_command(const nlmsghdr& message) {
  const auto& header = *static_cast<const rtmsg*>(payload_of(&message));
  const auto found = attributes_of<RTA_MAX + 1>(message, sizeof(header));
  std::string command = "ip ";
  if (header.rtm_family == AF_INET6) command += "-6 ";
  command += "route add ";
  command += found[RTA_DST] == nullptr
                 ? std::string("default")
                 : fmt::format("{}/{}", address_text(header.rtm_family, found[RTA_DST]),
                               header.rtm_dst_len);
  command += via_text(header.rtm_family, found[RTA_GATEWAY], found[RTA_VIA]);
  if (found[RTA_OIF] != nullptr) command += " dev " + link_text(number_of(found[RTA_OIF]));
  const std::uint32_t table =
      found[RTA_TABLE] != nullptr ? number_of(found[RTA_TABLE]) : header.rtm_table;
  if (table != RT_TABLE_MAIN) command += fmt::format(" table {}", table);
  command += fmt::format(" proto {}", header.rtm_protocol);
  if (header.rtm_scope != RT_SCOPE_UNIVERSE) command += fmt::format(" scope {}", header.rtm_scope);
  if (found[RTA_PREFSRC] != nullptr)
    command += " src " + address_text(header.rtm_family, found[RTA_PREFSRC]);
  if (found[RTA_PRIORITY] != nullptr)
    command += fmt::format(" metric {}", number_of(found[RTA_PRIORITY]));
  if ((header.rtm_flags & RTNH_F_ONLINK) != 0) command += " onlink";
  if (header.rtm_tos != 0) command += fmt::format(" tos {}", header.rtm_tos);
  if (found[RTA_MULTIPATH] != nullptr)
    command += nexthops_text(header.rtm_family, found[RTA_MULTIPATH]);
  return command;
}

}  // namespace ztcp::setup
