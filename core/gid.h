// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Addresses of RDMA ports, and the choice among a port's GIDs: a wrong one is the most common cause
// of RoCE that does not work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/address.h"

namespace ztcp {

using Gid = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2, kUnknown };

struct GidEntry {
  int index = 0;
  Gid gid{};
  GidType type = GidType::kUnknown;
  friend bool operator==(const GidEntry&, const GidEntry&) = default;
};

// In sysfs's form: "0000:0000:0000:0000:0000:ffff:0a00:0005".
std::optional<Gid> parse_gid(const std::string& text);
// A GID of RoCE is an IP address of its interface.
IpAddress address_of(const Gid& gid);
Gid gid_of(const IpAddress& address);
// In sysfs's form: "RoCE v2", "IB/RoCE v1".
GidType parse_gid_type(const std::string& text, bool is_infiniband);
const char* to_string(GidType type);
// An IPv4-mapped GID is written as IPv4: "::ffff:10.0.0.5" is "10.0.0.5".
std::string to_string(const Gid& gid);

// "10.0.0.5 (RoCE v2)"
std::string describe(const GidEntry& entry);

// Address handles store the index of their own GID in 8 bits.
inline constexpr int kMaxGidIndex = 255;

// The forwarding LID: bytes 4 and 5 of an InfiniBand GID, where the subnet manager routes between
// subnets by it; 0: none.
std::uint16_t flid_of(const Gid& gid);
// Whether two InfiniBand ports are in one subnet, so that they reach each other by LID. A FLID is
// not part of the prefix.
bool is_same_subnet(const Gid& one, const Gid& other);

// Preferences where several GIDs are usable.
struct GidWish {
  enum class Family : std::uint8_t { kAny, kIpv4, kIpv6 };

  // For RoCE; comes before all other criteria of choose_gid().
  std::optional<IpPrefix> range{};
  Family family = Family::kAny;
  GidType version = GidType::kRoceV2;
  // The network of the NIC's own address.
  std::optional<IpPrefix> near{};
  // For InfiniBand: take this index if its GID has a FLID; negative: don't.
  int flid_index = 1;
};

// Whether a RoCE entry fits `range` and `family`.
bool fits(const GidEntry& entry, const GidWish& wish);

// For RoCE, in this order: entries that fit the wish; version 2, which routers forward, before 1;
// the NIC's own address; those of its network; all others before link-local ones; IPv4 before IPv6.
// For InfiniBand: the entry with a FLID, else the first. Nothing: the table has no usable entry.
std::optional<GidEntry> choose_gid(std::span<const GidEntry> table, bool is_infiniband,
                                   const GidWish& wish = {});

}  // namespace ztcp
