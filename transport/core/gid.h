// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Addresses of RDMA ports, and which of a port's connections use: the most common cause of RoCE
// that does not work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "transport/core/address.h"

namespace ztcp {

using Gid = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2, kUnknown };

struct GidEntry {
  int index = 0;
  Gid gid{};
  GidType type = GidType::kUnknown;
  friend bool operator==(const GidEntry&, const GidEntry&) = default;
};

// As sysfs has it: "0000:0000:0000:0000:0000:ffff:0a00:0005".
std::optional<Gid> parse_gid(const std::string& text);
// Of RoCE it is one of its interface's.
IpAddress address_of(const Gid& gid);
Gid gid_of(const IpAddress& address);
// As sysfs has it: "RoCE v2", "IB/RoCE v1".
GidType parse_gid_type(const std::string& text, bool is_infiniband);
const char* to_string(GidType type);
// An IPv4 one as such: "::ffff:10.0.0.5" is "10.0.0.5".
std::string to_string(const Gid& gid);

// "10.0.0.5 (RoCE v2)"
std::string describe(const GidEntry& entry);

// Address handles have 8 bits for the index of their own GID.
inline constexpr int kMaxGidIndex = 255;

// The forwarding LID that a GID of InfiniBand carries in bytes 4 and 5 where the subnet manager
// routes between subnets by such; 0: none.
std::uint16_t flid_of(const Gid& gid);
// Whether two ports of InfiniBand are in one subnet, so that they reach each other by LID. A FLID
// is no part of the prefix.
bool is_same_subnet(const Gid& one, const Gid& other);

// What is preferred where several GIDs would do.
struct GidWish {
  enum class Family : std::uint8_t { kAny, kIpv4, kIpv6 };

  // Of RoCE, before all that choose_gid() goes by.
  std::optional<IpPrefix> range{};
  Family family = Family::kAny;
  GidType version = GidType::kRoceV2;
  // The network of the NIC's own address.
  std::optional<IpPrefix> near{};
  // Of InfiniBand: this index where its GID has a FLID; negative: no such.
  int flid_index = 1;
};

// Whether an entry of RoCE is one that `range` and `family` mean.
bool fits(const GidEntry& entry, const GidWish& wish);

// Of RoCE: what the wish names; then version 2, which routers forward, before 1; then the NIC's own
// address, and those of its network; an IPv4 address before one of IPv6, and both before link-local
// ones. Of InfiniBand: the one with a FLID, else the first. Nothing: the table has none that can be
// used.
std::optional<GidEntry> choose_gid(std::span<const GidEntry> table, bool is_infiniband,
                                   const GidWish& wish = {});

}  // namespace ztcp
