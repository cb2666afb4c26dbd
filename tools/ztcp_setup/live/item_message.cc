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

using netlink::aligned;
using netlink::Attribute;
using netlink::Attributes;
using netlink::behind;
using netlink::Bytes;
using netlink::NetlinkRequest;
using netlink::read_as;

// Minimum rest of a restored lease: time for its DHCP client to notice it.
constexpr std::int64_t kShortestLeaseS = 600;

struct Recorded {
  std::uint16_t type = 0;
  unsigned index = 0;  // The interface's number at that time.
  std::string payload;
};

// "24:7:0a0b...": the message's type, the interface's number at that time, and the bytes after the
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

// The lease's remaining time.
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

// The hops of an RTA_MULTIPATH; empty if one of them is malformed.
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

// Attributes with a route's destination device or gateway; a nexthop object replaces them.
bool says_where(std::uint16_t type) {
  return type == RTA_OIF || type == RTA_GATEWAY || type == RTA_VIA || type == RTA_MULTIPATH ||
         type == RTA_ENCAP || type == RTA_ENCAP_TYPE;
}

NetlinkRequest route_request(const Recorded& recorded, unsigned index) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<rtmsg>(payload);
  const Attributes attributes(behind(payload, sizeof(header)));
  const bool by_object = attributes.has(RTA_NH_ID);
  // The other flags are the kernel's output.
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
  header.nh_scope = 0;  // Output only, like all flags except RTNH_F_ONLINK.
  header.nh_flags &= RTNH_F_ONLINK;
  const Attributes attributes(behind(payload, sizeof(header)));
  // A group continues to exist without the members that disappeared.
  const int flag = attributes.has(NHA_GROUP) ? NLM_F_REPLACE : NLM_F_EXCL;
  NetlinkRequest request(RTM_NEWNEXTHOP, NLM_F_CREATE | flag, header);
  attributes.for_each([&](const Attribute& one) {
    if (one.type == NHA_OIF) {
      request.put(one.flagged_type, index);
    } else if (one.type == NHA_RES_GROUP) {
      request.put_nested(one.flagged_type, [&] {
        Attributes(one.payload).for_each([&](const Attribute& inner) {
          // The unbalanced time is read-only.
          if (inner.type >= NHA_RES_GROUP_BUCKETS && inner.type <= NHA_RES_GROUP_UNBALANCED_TIMER)
            request.put(inner.flagged_type, inner.payload);
        });
      });
    } else if (one.type <= NHA_ENCAP) {  // Beyond it are counters and query results.
      request.put(one.flagged_type, one.payload);
    }
  });
  return request;
}

}  // namespace

std::string recorded(const netlink::Message& message, unsigned index) {
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
