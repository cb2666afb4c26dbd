// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/live/network_text.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <net/if.h>

#include <fmt/format.h>

namespace ztcp::setup {
namespace {

using netlink::Attributes;
using netlink::behind;
using netlink::Bytes;
using netlink::Message;

// "?" where there are too few bytes.
std::string address_text(int family, Bytes bytes) {
  const std::size_t size = family == AF_INET6 ? sizeof(in6_addr) : sizeof(in_addr);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes.size() < size || ::inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr)
    return "?";
  return text.data();
}

std::string link_text(unsigned index) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(index, name.data()) == nullptr ? fmt::format("if{}", index) : name.data();
}

// "7/8,3": members of a group, with weights above 1.
std::string members_text(Bytes members) {
  std::string text;
  for (; !members.empty(); members = behind(members, sizeof(nexthop_grp))) {
    const auto member = netlink::read_as<nexthop_grp>(members);
    text += fmt::format("{}{}", text.empty() ? "" : "/", member.id);
    if (member.weight > 0) text += fmt::format(",{}", member.weight + 1);
  }
  return text;
}

// The gateway of a route or of a hop.
std::string via_text(int family, const Attributes& attributes) {
  if (const auto gateway = attributes.find(RTA_GATEWAY))
    return " via " + address_text(family, *gateway);
  const auto via = attributes.find(RTA_VIA);
  if (!via) return {};
  // A gateway of another family: the family, then its address.
  const auto other = netlink::read_as<std::uint16_t>(*via);
  return fmt::format(" via {}{}", other == AF_INET6 ? "inet6 " : "",
                     address_text(other, via->subspan(std::min(sizeof(other), via->size()))));
}

std::string hops_text(int family, Bytes hops) {
  std::string text;
  netlink::for_each_hop(hops, [&](const rtnexthop& hop, const Attributes& attributes) {
    text += fmt::format(" nexthop{} dev {} weight {}", via_text(family, attributes),
                        link_text(static_cast<unsigned>(hop.rtnh_ifindex)), hop.rtnh_hops + 1);
  });
  return text;
}

}  // namespace

std::string mac_text(Bytes mac) {
  const auto* first = reinterpret_cast<const unsigned char*>(mac.data());
  return fmt::format("{:02x}", fmt::join(first, first + mac.size(), ":"));
}

std::string address_command(const Message& message, const std::string& link) {
  const auto header = message.fixed<ifaddrmsg>();
  const Attributes attributes = message.attributes<ifaddrmsg>();
  const auto text = [&](unsigned type) {
    return address_text(header.ifa_family, attributes.find(type).value_or(Bytes()));
  };
  const bool has_remote = attributes.has(IFA_ADDRESS);
  const bool has_local = attributes.has(IFA_LOCAL);
  if (!has_remote && !has_local) return {};
  const std::string own = text(has_local ? IFA_LOCAL : IFA_ADDRESS);
  const std::string peer = has_remote ? text(IFA_ADDRESS) : own;
  std::string command =
      own == peer ? fmt::format("ip address add {}/{}", own, header.ifa_prefixlen)
                  : fmt::format("ip address add {} peer {}/{}", own, peer, header.ifa_prefixlen);
  if (attributes.has(IFA_BROADCAST)) command += " broadcast " + text(IFA_BROADCAST);
  if (header.ifa_scope != RT_SCOPE_UNIVERSE) command += fmt::format(" scope {}", header.ifa_scope);
  if (attributes.has(IFA_LABEL) && header.ifa_family == AF_INET &&
      attributes.text(IFA_LABEL) != link)
    command += fmt::format(" label {}", attributes.text(IFA_LABEL));
  const std::uint32_t flags =
      attributes.has(IFA_FLAGS) ? attributes.number(IFA_FLAGS) : header.ifa_flags;
  if ((flags & IFA_F_NOPREFIXROUTE) != 0) command += " noprefixroute";
  return command + " dev " + link;
}

std::string neighbour_command(const Message& message, const std::string& link) {
  const Attributes attributes = message.attributes<ndmsg>();
  const auto address = attributes.find(NDA_DST);
  if (!address) return {};
  std::string command =
      "ip neighbour add " + address_text(message.fixed<ndmsg>().ndm_family, *address);
  if (const auto mac = attributes.find(NDA_LLADDR)) command += " lladdr " + mac_text(*mac);
  return command + " nud permanent dev " + link;
}

std::string nexthop_command(const Message& message) {
  const auto header = message.fixed<nhmsg>();
  const Attributes attributes = message.attributes<nhmsg>();
  const std::uint32_t id = attributes.number(NHA_ID);
  if (const auto members = attributes.find(NHA_GROUP)) {
    std::string command =
        fmt::format("ip nexthop replace id {} group {}", id, members_text(*members));
    if (attributes.number<std::uint16_t>(NHA_GROUP_TYPE) == NEXTHOP_GRP_TYPE_RES)
      command += fmt::format(
          " type resilient buckets {}",
          attributes.nested(NHA_RES_GROUP).number<std::uint16_t>(NHA_RES_GROUP_BUCKETS));
    return fmt::format("{} proto {}", command, header.nh_protocol);
  }
  std::string command = header.nh_family == AF_INET6 ? "ip -6 nexthop add" : "ip nexthop add";
  command += fmt::format(" id {}", id);
  if (const auto gateway = attributes.find(NHA_GATEWAY))
    command += " via " + address_text(header.nh_family, *gateway);
  command += " dev " + link_text(attributes.number(NHA_OIF));
  if ((header.nh_flags & RTNH_F_ONLINK) != 0) command += " onlink";
  return fmt::format("{} proto {}", command, header.nh_protocol);
}

std::string route_command(const Message& message) {
  const auto header = message.fixed<rtmsg>();
  const Attributes attributes = message.attributes<rtmsg>();
  std::string command = "ip ";
  if (header.rtm_family == AF_INET6) command += "-6 ";
  command += "route add ";
  const auto destination = attributes.find(RTA_DST);
  command += destination ? fmt::format("{}/{}", address_text(header.rtm_family, *destination),
                                       header.rtm_dst_len)
                         : std::string("default");
  // Other attributes repeat the nexthop object's, unless a sysctl hides them.
  const bool by_object = attributes.has(RTA_NH_ID);
  if (by_object) {
    command += fmt::format(" nhid {}", attributes.number(RTA_NH_ID));
  } else {
    command += via_text(header.rtm_family, attributes);
    if (attributes.has(RTA_OIF)) command += " dev " + link_text(attributes.number(RTA_OIF));
  }
  const std::uint32_t table =
      attributes.has(RTA_TABLE) ? attributes.number(RTA_TABLE) : header.rtm_table;
  if (table != RT_TABLE_MAIN) command += fmt::format(" table {}", table);
  command += fmt::format(" proto {}", header.rtm_protocol);
  if (header.rtm_scope != RT_SCOPE_UNIVERSE) command += fmt::format(" scope {}", header.rtm_scope);
  if (const auto source = attributes.find(RTA_PREFSRC))
    command += " src " + address_text(header.rtm_family, *source);
  if (attributes.has(RTA_PRIORITY))
    command += fmt::format(" metric {}", attributes.number(RTA_PRIORITY));
  if (!by_object && (header.rtm_flags & RTNH_F_ONLINK) != 0) command += " onlink";
  if (header.rtm_tos != 0) command += fmt::format(" tos {}", header.rtm_tos);
  if (const auto hops = attributes.find(RTA_MULTIPATH); hops && !by_object)
    command += hops_text(header.rtm_family, *hops);
  return command;
}

}  // namespace ztcp::setup
