// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/item_message.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <linux/if_addr.h>
#include <linux/neighbour.h>

#include <fmt/format.h>

#include "tools/ztcp_setup/hex.h"

namespace ztcp::setup {
namespace {

using config::netlink::aligned;
using config::netlink::Attribute;
using config::netlink::Attributes;
using config::netlink::behind;
using config::netlink::Bytes;
using config::netlink::read_as;
using config::netlink::Request;

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

Request address_request(const Recorded& recorded, unsigned index, std::int64_t expires_unix_s) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<ifaddrmsg>(payload);
  header.ifa_index = index;
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, header);
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

Request neighbour_request(const Recorded& recorded, unsigned index) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<ndmsg>(payload);
  header.ndm_ifindex = static_cast<int>(index);
  Request request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL, header);
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

Request route_request(const Recorded& recorded, unsigned index) {
  const Bytes payload = bytes_of(recorded.payload);
  auto header = read_as<rtmsg>(payload);
  header.rtm_flags &= RTNH_F_ONLINK;  // The others are the kernel's remarks.
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, header);
  Attributes(behind(payload, sizeof(header))).for_each([&](const Attribute& one) {
    // A nexthop object went with its interface; its parts are in the message as well.
    if (one.type == RTA_CACHEINFO || one.type == RTA_NH_ID) return;
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

}  // namespace

std::string recorded(const config::netlink::Message& message, unsigned index) {
  return fmt::format("{}:{}:{}", message.header.nlmsg_type, index,
                     to_hex(chars_of(message.payload)));
}

Result<Request> request_for(const NetworkItem& item, unsigned index) {
  const auto recorded = read_recorded(item.message);
  const std::size_t size = recorded ? recorded->payload.size() : 0;
  if (recorded && recorded->type == RTM_NEWADDR && size >= sizeof(ifaddrmsg))
    return address_request(*recorded, index, item.expires_unix_s);
  if (recorded && recorded->type == RTM_NEWNEIGH && size >= sizeof(ndmsg))
    return neighbour_request(*recorded, index);
  if (recorded && recorded->type == RTM_NEWROUTE && size >= sizeof(rtmsg))
    return route_request(*recorded, index);
  return fail(Errc::kInvalidArgument, "recorded message");
}

}  // namespace ztcp::setup
