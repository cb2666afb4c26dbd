// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/live/item_message.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/hex.h"

namespace ztcp::setup {
namespace {

using config::netlink::aligned;
using config::netlink::Attribute;
using config::netlink::Attributes;
using config::netlink::behind;
using config::netlink::Bytes;
using config::netlink::NetlinkRequest;
using config::netlink::read_as;

// What a lease has left at least when it comes back: time for its DHCP client to wake up.
constexpr std::int64_t kShortestLeaseS = 600;

struct Recorded {
  std::uint16_t type = 0;
  unsigned index = 0;  // Of its interface then.
  std::string payload;
};

// "24:7:0a0b...": the message's type, the interface's number then, and what stood behind the
// netlink header.
std::optional<Recorded> read_recorded(const std::string& text) {
  Recorded recorded;
  char* end = nullptr;
  recorded.type = static_cast<std::uint16_t>(std::strtoul(text.c_str(), &end, 10));
  if (*end != ':') return std::nullopt;
  recorded.index = static_cast<unsigned>(std::strtoul(end + 1, &end, 10));
  if (*end != ':') return std::nullopt;
  recorded.payload = from_hex(end + 1);
  return recorded;
}

// Time has passed since.
Bytes lease_now(std::int64_t expires_unix_s, ifa_cacheinfo& info) {
  info.ifa_valid = static_cast<std::uint32_t>(
      std::max<std::int64_t>(expires_unix_s - std::time(nullptr), kShortestLeaseS));
  info.ifa_prefered = std::min(info.ifa_prefered, info.ifa_valid);
  return std::as_bytes(std::span(&info, 1));
}

NetlinkRequest address_request(const Recorded& recorded, unsigned index,
                               std::int64_t expires_unix_s) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<ifaddrmsg>(payload);
  header.ifa_index = index;
  NetlinkRequest request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, header);
  Attributes(behind(payload, sizeof(header))).for_each([&](const Attribute& one) {
    if (one.type != IFA_CACHEINFO) {
      request.put(one.flagged_type, one.payload);
    } else if (expires_unix_s != 0 && one.payload.size() >= sizeof(ifa_cacheinfo)) {
      auto info = read_as<ifa_cacheinfo>(one.payload);
      request.put(one.flagged_type, lease_now(expires_unix_s, info));
    }
  });
  return request;
}

NetlinkRequest neighbour_request(const Recorded& recorded, unsigned index) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<ndmsg>(payload);
  header.ndm_ifindex = static_cast<int>(index);
  NetlinkRequest request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL, header);
  Attributes(behind(payload, sizeof(header))).for_each([&](const Attribute& one) {
    if (one.type == NDA_DST || one.type == NDA_LLADDR) request.put(one.flagged_type, one.payload);
  });
  return request;
}

// The hops of an RTA_MULTIPATH; empty where one of them is damaged.
std::string hops_now(std::string hops, unsigned index_then, unsigned index) {
  for (std::size_t at = 0; at + sizeof(rtnexthop) <= hops.size();) {
    rtnexthop hop{};
    std::memcpy(&hop, hops.data() + at, sizeof(hop));
    if (hop.rtnh_len < sizeof(hop)) return {};
    if (static_cast<unsigned>(hop.rtnh_ifindex) == index_then)
      hop.rtnh_ifindex = static_cast<int>(index);
    hop.rtnh_flags &= RTNH_F_ONLINK;
    std::memcpy(hops.data() + at, &hop, sizeof(hop));
    at += aligned(hop.rtnh_len);
  }
  return hops;
}

// Those that say where a route leads, which a nexthop object says in their place.
bool says_where(std::uint16_t type) {
  return type == RTA_OIF || type == RTA_GATEWAY || type == RTA_VIA || type == RTA_MULTIPATH ||
         type == RTA_ENCAP || type == RTA_ENCAP_TYPE;
}

NetlinkRequest route_request(const Recorded& recorded, unsigned index) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<rtmsg>(payload);
  const Attributes attributes(behind(payload, sizeof(header)));
  const bool by_object = attributes.has(RTA_NH_ID);
  // The others are the kernel's remarks.
  header.rtm_flags &= by_object ? 0U : RTNH_F_ONLINK;
  NetlinkRequest request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, header);
  attributes.for_each([&](const Attribute& one) {
    if (one.type == RTA_CACHEINFO || (by_object && says_where(one.type))) return;
    if (one.type == RTA_OIF) {
      request.put(one.flagged_type, index);
    } else if (one.type == RTA_MULTIPATH) {
      const std::string hops = hops_now(std::string(chars_of(one.payload)), recorded.index, index);
      if (!hops.empty()) request.put(one.flagged_type, bytes_of(hops));
    } else {
      request.put(one.flagged_type, one.payload);
    }
  });
  return request;
}

NetlinkRequest nexthop_request(const Recorded& recorded, unsigned index) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<nhmsg>(payload);
  header.nh_scope = 0;  // A remark, like all flags but this one.
  header.nh_flags &= RTNH_F_ONLINK;
  const Attributes attributes(behind(payload, sizeof(header)));
  // A group lives on without the members that went.
  const int flag = attributes.has(NHA_GROUP) ? NLM_F_REPLACE : NLM_F_EXCL;
  NetlinkRequest request(RTM_NEWNEXTHOP, NLM_F_CREATE | flag, header);
  attributes.for_each([&](const Attribute& one) {
    if (one.type == NHA_OIF) {
      request.put(one.flagged_type, index);
    } else if (one.type == NHA_RES_GROUP) {
      request.put_nested(one.flagged_type, [&] {
        Attributes(one.payload).for_each([&](const Attribute& inner) {
          // The time out of balance is told, not taken.
          if (inner.type >= NHA_RES_GROUP_BUCKETS && inner.type <= NHA_RES_GROUP_UNBALANCED_TIMER)
            request.put(inner.flagged_type, inner.payload);
        });
      });
    } else if (one.type <= NHA_ENCAP) {  // What follows is counters and answers to queries.
      request.put(one.flagged_type, one.payload);
    }
  });
  return request;
}

}  // namespace

std::string recorded(const config::netlink::Message& message, unsigned index) {
  return fmt::format("{}:{}:{}", message.header.nlmsg_type, index,
                     to_hex(chars_of(message.payload)));
}

Result<NetlinkRequest> request_for(const NetworkItem& item, unsigned index) {
  const auto recorded = read_recorded(item.message);
  const std::size_t size = recorded ? recorded->payload.size() : 0;
  if (recorded && recorded->type == RTM_NEWADDR && size >= sizeof(ifaddrmsg))
    return address_request(*recorded, index, item.expires_unix_s);
  if (recorded && recorded->type == RTM_NEWNEIGH && size >= sizeof(ndmsg))
    return neighbour_request(*recorded, index);
  if (recorded && recorded->type == RTM_NEWROUTE && size >= sizeof(rtmsg))
    return route_request(*recorded, index);
  if (recorded && recorded->type == RTM_NEWNEXTHOP && size >= sizeof(nhmsg))
    return nexthop_request(*recorded, index);
  return fail(Errc::kInvalidArgument, "recorded message");
}

}  // namespace ztcp::setup
