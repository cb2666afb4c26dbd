// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads netlink: messages in a datagram, attributes in a message or nested, hops of a route. Checks
// each length against its container before using it, and copies values out. All types are views of
// bytes owned by the caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <optional>
#include <span>
#include <string>

namespace ztcp::netlink {

using Bytes = std::span<const std::byte>;

// Netlink aligns everything to 4 bytes.
constexpr std::size_t aligned(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

// The bytes behind the first `size` bytes and their padding.
inline Bytes behind(Bytes bytes, std::size_t size) {
  return bytes.subspan(std::min(aligned(size), bytes.size()));
}

// All zero if there are too few bytes.
template <class Value>
Value read_as(Bytes bytes) {
  Value value{};
  if (bytes.size() >= sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

struct Attribute {
  std::uint16_t type = 0;
  std::uint16_t flagged_type = 0;  // As received, with NLA_F_NESTED and NLA_F_NET_BYTEORDER.
  Bytes payload;
};

class Attributes {
 public:
  explicit Attributes(Bytes bytes) : bytes_(bytes) {}

  // Calls visit(attribute) for each; stops at a truncated one.
  template <class Visit>
  void for_each(Visit&& visit) const {
    Bytes left = bytes_;
    while (left.size() >= sizeof(nlattr)) {
      const auto header = read_as<nlattr>(left);
      if (header.nla_len < sizeof(nlattr) || header.nla_len > left.size()) return;
      visit(Attribute{static_cast<std::uint16_t>(header.nla_type & NLA_TYPE_MASK), header.nla_type,
                      left.subspan(sizeof(nlattr), header.nla_len - sizeof(nlattr))});
      left = behind(left, header.nla_len);
    }
  }

  // The last one of this type, as in the kernel.
  std::optional<Bytes> find(unsigned type) const {
    std::optional<Bytes> found;
    for_each([&](const Attribute& one) {
      if (one.type == type) found = one.payload;
    });
    return found;
  }
  bool has(unsigned type) const { return find(type).has_value(); }
  // 0 if absent; a text is empty.
  template <class Value = std::uint32_t>
  Value number(unsigned type) const {
    return read_as<Value>(find(type).value_or(Bytes()));
  }
  std::string text(unsigned type) const {
    const Bytes bytes = find(type).value_or(Bytes());
    const auto* first = reinterpret_cast<const char*>(bytes.data());
    return bytes.empty() ? std::string() : std::string(first, ::strnlen(first, bytes.size()));
  }
  Attributes nested(unsigned type) const { return Attributes(find(type).value_or(Bytes())); }

 private:
  Bytes bytes_;
};

struct Message {
  nlmsghdr header{};
  Bytes payload;  // Everything behind the header.

  // The fixed part at the start of each type of message (ifinfomsg, rtmsg); attributes() follow it.
  template <class Fixed>
  Fixed fixed() const {
    return read_as<Fixed>(payload);
  }
  template <class Fixed>
  Attributes attributes() const {
    return Attributes(behind(payload, sizeof(Fixed)));
  }
};

// Calls visit(message) for each. False: the last one is truncated, and was not visited.
template <class Visit>
bool for_each_message(Bytes datagram, Visit&& visit) {
  while (!datagram.empty()) {
    const auto header = read_as<nlmsghdr>(datagram);
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > datagram.size()) return false;
    visit(Message{header, datagram.subspan(sizeof(header), header.nlmsg_len - sizeof(header))});
    datagram = behind(datagram, header.nlmsg_len);
  }
  return true;
}

// Calls visit(rtnexthop, attributes) for each hop of an RTA_MULTIPATH; stops at a truncated one.
template <class Visit>
void for_each_hop(Bytes hops, Visit&& visit) {
  while (hops.size() >= sizeof(rtnexthop)) {
    const auto hop = read_as<rtnexthop>(hops);
    if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > hops.size()) return;
    visit(hop, Attributes(hops.subspan(sizeof(hop), hop.rtnh_len - sizeof(hop))));
    hops = behind(hops, hop.rtnh_len);
  }
}

}  // namespace ztcp::netlink
