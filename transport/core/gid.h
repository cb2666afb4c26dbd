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

// Of RoCE: version 2, which routers forward, before 1; an IPv4 address before one of IPv6, and both
// before a link-local one. Of InfiniBand: the first. Nothing: the table is empty.
std::optional<GidEntry> choose_gid(std::span<const GidEntry> table, bool is_infiniband);

}  // namespace ztcp
