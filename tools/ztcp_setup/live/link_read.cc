// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/live/link_read.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <linux/if_link.h>
#include <linux/nexthop.h>
#include <net/if.h>
#include <set>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/hex.h"
#include "tools/ztcp_setup/live/item_message.h"
#include "tools/ztcp_setup/live/network_text.h"

namespace ztcp::setup {
namespace {

using netlink::Attributes;
using netlink::Bytes;
using netlink::Message;

constexpr std::uint32_t kForEver = 0xffffffff;

std::string mac_in(const Attributes& attributes, unsigned type) {
  return mac_text(attributes.find(type).value_or(Bytes()));
}

InterfaceState state_of(const Message& message) {
  const Attributes attributes = message.attributes<ifinfomsg>();
  InterfaceState state;
  state.name = attributes.text(IFLA_IFNAME);
  state.mac = mac_in(attributes, IFLA_ADDRESS);
  state.permanent_mac = mac_in(attributes, IFLA_PERM_ADDRESS);
  state.mtu_bytes = attributes.number(IFLA_MTU);
  state.queue_length = attributes.number(IFLA_TXQLEN);
  state.alias = attributes.text(IFLA_IFALIAS);
  state.up = (message.fixed<ifinfomsg>().ifi_flags & IFF_UP) != 0;
  if (const std::uint32_t master = attributes.number(IFLA_MASTER); master != 0) {
    std::array<char, IF_NAMESIZE> name{};
    if (::if_indextoname(master, name.data()) != nullptr) state.master = name.data();
  }
  const Attributes info = attributes.nested(IFLA_LINKINFO);
  state.kind = info.text(IFLA_INFO_KIND);
  state.info = to_hex(chars_of(info.find(IFLA_INFO_DATA).value_or(Bytes())));
  return state;
}

// Kinds that depend on another interface and disappear with it.
bool is_child(const InterfaceState& link) {
  static const std::set<std::string> kinds{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"};
  return kinds.contains(link.kind);
}

// 0: permanent.
std::int64_t expiry_of(const Attributes& address) {
  const Bytes bytes = address.find(IFA_CACHEINFO).value_or(Bytes());
  if (bytes.size() < sizeof(ifa_cacheinfo)) return 0;
  const auto info = netlink::read_as<ifa_cacheinfo>(bytes);
  return info.ifa_valid == kForEver ? 0 : std::time(nullptr) + info.ifa_valid;
}

// Privacy addresses are regenerated from their public address.
bool worth_keeping(const ifaddrmsg& header, const Attributes& address) {
  const std::uint32_t flags = address.has(IFA_FLAGS) ? address.number(IFA_FLAGS) : header.ifa_flags;
  return header.ifa_family == AF_INET ||
         (header.ifa_family == AF_INET6 && (flags & IFA_F_TEMPORARY) == 0);
}

bool worth_keeping(const ndmsg& header) {
  return (header.ndm_state & NUD_PERMANENT) != 0 &&
         (header.ndm_family == AF_INET || header.ndm_family == AF_INET6);
}

// Skips routes that the kernel or its router discovery create themselves.
bool worth_keeping(const rtmsg& header, const Attributes& route) {
  const std::uint32_t table = route.number(RTA_TABLE);
  return (header.rtm_family == AF_INET || header.rtm_family == AF_INET6) &&
         header.rtm_type == RTN_UNICAST && (header.rtm_flags & RTM_F_CLONED) == 0 &&
         header.rtm_protocol != RTPROT_RA && header.rtm_protocol != RTPROT_REDIRECT &&
         (table != 0 ? table : header.rtm_table) != RT_TABLE_LOCAL;
}

bool goes_through(const Attributes& route, unsigned index) {
  bool found = route.number(RTA_OIF) == index;
  netlink::for_each_hop(route.find(RTA_MULTIPATH).value_or(Bytes()),
                        [&](const rtnexthop& hop, const Attributes&) {
                          found |= static_cast<unsigned>(hop.rtnh_ifindex) == index;
                        });
  return found;
}

// Whether a nexthop group contains one of `ids`.
bool has_member(Bytes members, const std::set<std::uint32_t>& ids) {
  bool found = false;
  for (; !members.empty(); members = netlink::behind(members, sizeof(nexthop_grp)))
    found |= ids.contains(netlink::read_as<nexthop_grp>(members).id);
  return found;
}

// Reads one interface, dump by dump.
class Reader {
 public:
  Reader(netlink::Session& kernel, std::string name, unsigned index)
      : kernel_(kernel), name_(std::move(name)), index_(index) {}

  Result<std::optional<InterfaceState>> read() {
    ZTCP_CHECK(read_links());
    if (state_.name.empty()) return std::optional<InterfaceState>{};
    ZTCP_CHECK(read_addresses());
    ZTCP_CHECK(read_neighbours());
    ZTCP_CHECK(read_nexthops());
    ZTCP_CHECK(read_routes());
    for (const std::string& child : children_)
      if (std::optional<InterfaceState> found = ZTCP_TRY(read_link(kernel_, child)))
        state_.children.push_back(std::move(*found));
    return std::optional<InterfaceState>(std::move(state_));
  }

 private:
  Status read_links() {
    return kernel_.dump(RTM_GETLINK, ifinfomsg{}, [&](const Message& message) {
      const auto header = message.fixed<ifinfomsg>();
      const Attributes attributes = message.attributes<ifinfomsg>();
      if (header.ifi_family != AF_UNSPEC) return;
      if (static_cast<unsigned>(header.ifi_index) == index_) state_ = state_of(message);
      if (attributes.number(IFLA_LINK) == index_ && !attributes.has(IFLA_LINK_NETNSID))
        if (const InterfaceState child = state_of(message); is_child(child))
          children_.push_back(child.name);
    });
  }

  Status read_addresses() {
    return kernel_.dump(RTM_GETADDR, ifaddrmsg{}, [&](const Message& message) {
      const auto header = message.fixed<ifaddrmsg>();
      const Attributes attributes = message.attributes<ifaddrmsg>();
      if (header.ifa_index == index_ && worth_keeping(header, attributes))
        state_.addresses.push_back(
            {address_command(message, name_), recorded(message, index_), expiry_of(attributes)});
    });
  }

  Status read_neighbours() {
    return kernel_.dump(RTM_GETNEIGH, ndmsg{}, [&](const Message& message) {
      const auto header = message.fixed<ndmsg>();
      if (static_cast<unsigned>(header.ndm_ifindex) == index_ && worth_keeping(header))
        state_.neighbours.push_back(
            {neighbour_command(message, name_), recorded(message, index_), 0});
    });
  }

  // Reads objects that use this interface, then groups that contain one of these.
  Status read_nexthops() {
    const auto take = [&](const Message& message) {
      nexthops_.push_back({nexthop_command(message), recorded(message, index_), 0});
      nexthop_ids_.insert(message.attributes<nhmsg>().number(NHA_ID));
    };
    const Status listed = kernel_.dump(RTM_GETNEXTHOP, nhmsg{}, [&](const Message& message) {
      if (message.attributes<nhmsg>().number(NHA_OIF) == index_) take(message);
    });
    // Linux before 5.3 has none.
    if (!listed) return listed.error().sys_errno == EOPNOTSUPP ? Status{} : listed;
    if (nexthops_.empty()) return {};
    return kernel_.dump(RTM_GETNEXTHOP, nhmsg{}, [&](const Message& message) {
      const auto members = message.attributes<nhmsg>().find(NHA_GROUP);
      if (members && has_member(*members, nexthop_ids_)) take(message);
    });
  }

  Status read_routes() {
    std::vector<NetworkItem> others;
    ZTCP_CHECK(kernel_.dump(RTM_GETROUTE, rtmsg{}, [&](const Message& message) {
      const Attributes attributes = message.attributes<rtmsg>();
      if (!worth_keeping(message.fixed<rtmsg>(), attributes)) return;
      // A sysctl hides the device of a route with a nexthop object.
      if (!goes_through(attributes, index_) && !nexthop_ids_.contains(attributes.number(RTA_NH_ID)))
        return;
      const bool direct = !attributes.has(RTA_GATEWAY) && !attributes.has(RTA_VIA) &&
                          !attributes.has(RTA_MULTIPATH) && !attributes.has(RTA_NH_ID);
      (direct ? state_.routes : others)
          .push_back({route_command(message), recorded(message, index_), 0});
    }));
    // Direct routes lead to the gateways of nexthop objects, and these to those of the other
    // routes.
    for (auto* items : {&nexthops_, &others})
      std::move(items->begin(), items->end(), std::back_inserter(state_.routes));
    return {};
  }

  netlink::Session& kernel_;
  const std::string name_;
  const unsigned index_;
  InterfaceState state_;
  std::vector<NetworkItem> nexthops_;
  std::set<std::uint32_t> nexthop_ids_;
  std::vector<std::string> children_;  // Their names.
};

}  // namespace

Result<std::optional<InterfaceState>> read_link(netlink::Session& kernel, const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) return std::optional<InterfaceState>{};
  return Reader(kernel, name, index).read();
}

}  // namespace ztcp::setup
