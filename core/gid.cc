// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/gid.h"

#include <algorithm>

namespace ztcp {
namespace {

// A lower rank is better.
int rank_of(const GidEntry& entry, const GidWish& wish) {
  const IpAddress address = address_of(entry.gid);
  const int family = address.is_v4() ? 0 : 1;
  int rank = (address.is_link_local() ? 4 : 2) + family;
  if (wish.near && wish.near->length > 0 && wish.near->contains(address))
    rank = wish.near->address == address ? 0 : 1;
  if (entry.type != wish.version) rank += 10;
  return fits(entry, wish) ? rank : rank + 100;
}

}  // namespace

std::uint16_t flid_of(const Gid& gid) { return static_cast<std::uint16_t>(gid[4] << 8U | gid[5]); }

bool is_same_subnet(const Gid& one, const Gid& other) {
  const bool has_flid = flid_of(one) != 0 || flid_of(other) != 0;
  for (std::size_t i = 0; i < 8; ++i)
    if (one[i] != other[i] && !(has_flid && (i == 4 || i == 5))) return false;
  return true;
}

bool fits(const GidEntry& entry, const GidWish& wish) {
  const IpAddress address = address_of(entry.gid);
  if (wish.family == GidWish::Family::kIpv4 && !address.is_v4()) return false;
  if (wish.family == GidWish::Family::kIpv6 && address.is_v4()) return false;
  return !wish.range || wish.range->contains(address);
}

std::optional<Gid> parse_gid(const std::string& text) {
  const auto address = parse_ip(text);
  if (!address) return std::nullopt;
  return gid_of(*address);
}

Gid gid_of(const IpAddress& address) {
  Gid gid{};
  for (std::size_t i = 0; i < gid.size(); ++i)
    gid[i] = static_cast<std::uint8_t>((i < 8 ? address.high : address.low) >> (56 - i % 8 * 8));
  return gid;
}

IpAddress address_of(const Gid& gid) {
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t i = 0; i < gid.size(); ++i) halves[i / 8] = halves[i / 8] << 8U | gid[i];
  return {halves[0], halves[1]};
}

GidType parse_gid_type(const std::string& text, bool is_infiniband) {
  if (text.starts_with("RoCE v2")) return GidType::kRoceV2;
  // The kernel uses one word for both.
  if (text.starts_with("IB/RoCE v1"))
    return is_infiniband ? GidType::kInfiniBand : GidType::kRoceV1;
  if (text.starts_with("RoCE v1")) return GidType::kRoceV1;
  return GidType::kUnknown;
}

const char* to_string(GidType type) {
  switch (type) {
    case GidType::kInfiniBand:
      return "InfiniBand";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
    case GidType::kUnknown:
      break;
  }
  return "of unknown type";
}

std::string to_string(const Gid& gid) { return ztcp::to_string(address_of(gid)); }

std::string describe(const GidEntry& entry) {
  return to_string(entry.gid) + " (" + to_string(entry.type) + ")";
}

std::optional<GidEntry> choose_gid(std::span<const GidEntry> table, bool is_infiniband,
                                   const GidWish& wish) {
  const GidEntry* best = nullptr;
  for (const GidEntry& entry : table) {
    if (entry.gid == Gid{} || entry.index > kMaxGidIndex) continue;
    if (is_infiniband) {
      if (entry.index == wish.flid_index && flid_of(entry.gid) != 0) return entry;
      if (best == nullptr) best = &entry;
      continue;
    }
    if (entry.type == GidType::kUnknown) continue;
    if (best == nullptr || rank_of(entry, wish) < rank_of(*best, wish)) best = &entry;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

}  // namespace ztcp
