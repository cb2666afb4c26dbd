// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/gid.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

GidEntry entry(int index, std::uint64_t high, std::uint64_t low, GidType type) {
  GidEntry out{.index = index, .type = type};
  for (std::size_t i = 0; i < 8; ++i) {
    out.gid[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
    out.gid[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
  }
  return out;
}
constexpr std::uint64_t kLinkLocal = 0xfe80'0000'0000'0000;
constexpr std::uint64_t kGlobal = 0x2001'0db8'0000'0000;
constexpr std::uint64_t kIpv4 = 0xffff'0a00'0001;

int chosen(const std::vector<GidEntry>& table, bool is_infiniband = false) {
  const auto found = choose_gid(table, is_infiniband);
  return found ? found->index : -1;
}

TEST(Gid, RoceV2WithAnIpv4AddressIsBest) {
  const std::vector<GidEntry> table{
      entry(0, kLinkLocal, 1, GidType::kRoceV1), entry(1, kLinkLocal, 1, GidType::kRoceV2),
      entry(2, 0, kIpv4, GidType::kRoceV1),      entry(3, kGlobal, 5, GidType::kRoceV2),
      entry(4, 0, kIpv4, GidType::kRoceV2),      entry(5, 0, kIpv4 + 1, GidType::kRoceV2)};
  EXPECT_EQ(chosen(table), 4) << "the first of equals";
  EXPECT_EQ(chosen({table.begin(), table.begin() + 4}), 3) << "of IPv6 before link-local";
  EXPECT_EQ(chosen({table.begin(), table.begin() + 3}), 1) << "version 2 before an address";
  EXPECT_EQ(chosen({table.begin(), table.begin() + 1}), 0) << "better than none";
}

TEST(Gid, EmptyOnesAndThoseOfUnknownTypeAreNone) {
  EXPECT_EQ(chosen({}), -1);
  EXPECT_EQ(chosen({entry(0, 0, 0, GidType::kRoceV2), entry(1, 0, kIpv4, GidType::kUnknown)}), -1);
}

TEST(Gid, InfiniBandTakesTheFirst) {
  EXPECT_EQ(chosen({entry(0, kLinkLocal, 7, GidType::kUnknown),
                    entry(1, kLinkLocal, 8, GidType::kInfiniBand)},
                   true),
            0);
}

TEST(Gid, TypesAreTheKernelsWords) {
  EXPECT_EQ(parse_gid_type("RoCE v2", false), GidType::kRoceV2);
  EXPECT_EQ(parse_gid_type("IB/RoCE v1", false), GidType::kRoceV1);
  EXPECT_EQ(parse_gid_type("IB/RoCE v1", true), GidType::kInfiniBand);
  EXPECT_EQ(parse_gid_type("", false), GidType::kUnknown);
}

TEST(Gid, ReadsAsAnAddress) {
  EXPECT_EQ(to_string(entry(0, 0, kIpv4, GidType::kRoceV2).gid), "10.0.0.1");
  EXPECT_EQ(to_string(entry(0, kLinkLocal, 0x5aff'fe00'0001, GidType::kRoceV2).gid),
            "fe80::5aff:fe00:1");
}

TEST(Gid, IsReadAsSysfsWritesIt) {
  const auto gid = parse_gid("0000:0000:0000:0000:0000:ffff:0a00:0005");
  ASSERT_TRUE(gid);
  EXPECT_EQ(address_of(*gid), *parse_ip("10.0.0.5"));
  EXPECT_EQ(to_string(*gid), "10.0.0.5");
  EXPECT_EQ(address_of(*parse_gid("fe80:0000:0000:0000:0202:03ff:fe04:0506")),
            *parse_ip("fe80::202:3ff:fe04:506"));
  EXPECT_FALSE(parse_gid("Invalid argument"));
}

}  // namespace
}  // namespace ztcp
