// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/gid.h"

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

int chosen(const std::vector<GidEntry>& table, bool is_infiniband = false,
           const GidWish& wish = {}) {
  const auto found = choose_gid(table, is_infiniband, wish);
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

TEST(Gid, LinkLocalGidsAreChosenLast) {
  constexpr std::uint64_t kIpv4LinkLocal = 0xffff'a9fe'0101;
  const std::vector<GidEntry> table{entry(0, kLinkLocal, 1, GidType::kRoceV2),
                                    entry(1, 0, kIpv4LinkLocal, GidType::kRoceV2),
                                    entry(2, kGlobal, 5, GidType::kRoceV2)};
  EXPECT_EQ(chosen(table), 2);
  EXPECT_EQ(chosen({table.begin(), table.begin() + 2}), 1);
}

TEST(Gid, TheNicsOwnAddressIsPreferredThenItsNetwork) {
  const std::vector<GidEntry> table{
      entry(0, 0, 0xffff'c0a8'0001, GidType::kRoceV2), entry(1, 0, kIpv4, GidType::kRoceV1),
      entry(2, 0, kIpv4 + 1, GidType::kRoceV2), entry(3, 0, kIpv4, GidType::kRoceV2)};
  const GidWish own{.near = parse_ip_prefix("10.0.0.1/24")};
  EXPECT_EQ(chosen(table, false, own), 3);
  EXPECT_EQ(chosen({table.begin(), table.begin() + 3}, false, own), 2) << "of version 2";
  EXPECT_EQ(chosen(table, false, {.near = parse_ip_prefix("10.9.0.1/24")}), 0);
  EXPECT_EQ(chosen(table, false, {.near = IpPrefix()}), 0) << "a NIC without an address";
}

TEST(Gid, AWishIsPreferredWhereAnEntryFitsIt) {
  const std::vector<GidEntry> table{
      entry(0, kLinkLocal, 1, GidType::kRoceV2), entry(1, 0, kIpv4, GidType::kRoceV1),
      entry(2, 0, kIpv4, GidType::kRoceV2), entry(3, kGlobal, 5, GidType::kRoceV2),
      entry(4, 0, 0xffff'c0a8'0001, GidType::kRoceV2)};
  EXPECT_EQ(chosen(table, false, {.family = GidWish::Family::kIpv6}), 3);
  EXPECT_EQ(chosen(table, false, {.family = GidWish::Family::kIpv4}), 2);
  EXPECT_EQ(chosen(table, false, {.range = parse_ip_prefix("192.168.0.0/16")}), 4);
  EXPECT_EQ(chosen(table, false, {.version = GidType::kRoceV1}), 1);
  EXPECT_EQ(chosen(table, false, {.range = parse_ip_prefix("172.16.0.0/12")}), 2)
      << "one that serves is better than none";
}

TEST(Gid, IndexesAboveAnAddressHandlesLimitAreSkipped) {
  EXPECT_EQ(chosen({entry(256, 0, kIpv4, GidType::kRoceV2)}), -1);
  EXPECT_EQ(
      chosen({entry(256, 0, kIpv4, GidType::kRoceV2), entry(255, kLinkLocal, 1, GidType::kRoceV1)}),
      255);
}

TEST(Gid, EmptyEntriesAndUnknownTypesAreSkipped) {
  EXPECT_EQ(chosen({}), -1);
  EXPECT_EQ(chosen({entry(0, 0, 0, GidType::kRoceV2), entry(1, 0, kIpv4, GidType::kUnknown)}), -1);
}

TEST(Gid, InfiniBandTakesTheFirst) {
  EXPECT_EQ(chosen({entry(0, kLinkLocal, 7, GidType::kUnknown),
                    entry(1, kLinkLocal, 8, GidType::kInfiniBand)},
                   true),
            0);
}

TEST(Gid, InfiniBandTakesTheOneWithAForwardingLid) {
  const std::vector<GidEntry> table{entry(0, kLinkLocal, 7, GidType::kInfiniBand),
                                    entry(1, 0xfec0'0000'0012'0003, 7, GidType::kInfiniBand)};
  EXPECT_EQ(flid_of(table[1].gid), 0x12);
  EXPECT_EQ(chosen(table, true), 1);
  EXPECT_EQ(chosen(table, true, {.flid_index = 0}), 0);
  EXPECT_EQ(chosen(table, true, {.flid_index = -1}), 0);
}

TEST(Gid, AForwardingLidIsNoPartOfTheSubnet) {
  const auto with = [](std::uint64_t prefix) { return entry(0, prefix, 7, {}).gid; };
  EXPECT_TRUE(is_same_subnet(with(0xfec0'0000'0012'0003), with(0xfec0'0000'0013'0003)));
  EXPECT_FALSE(is_same_subnet(with(0xfec0'0000'0012'0003), with(0xfec0'0000'0013'0004)));
  EXPECT_TRUE(is_same_subnet(with(kLinkLocal), with(kLinkLocal)));
  EXPECT_FALSE(is_same_subnet(with(kLinkLocal), with(0xfe80'0000'0000'0001)));
}

TEST(Gid, TypesAreParsedFromTheKernelsText) {
  EXPECT_EQ(parse_gid_type("RoCE v2", false), GidType::kRoceV2);
  EXPECT_EQ(parse_gid_type("IB/RoCE v1", false), GidType::kRoceV1);
  EXPECT_EQ(parse_gid_type("IB/RoCE v1", true), GidType::kInfiniBand);
  EXPECT_EQ(parse_gid_type("", false), GidType::kUnknown);
}

TEST(Gid, TextIsAnAddress) {
  EXPECT_EQ(to_string(entry(0, 0, kIpv4, GidType::kRoceV2).gid), "10.0.0.1");
  EXPECT_EQ(to_string(entry(0, kLinkLocal, 0x5aff'fe00'0001, GidType::kRoceV2).gid),
            "fe80::5aff:fe00:1");
}

TEST(Gid, SysfsTextIsParsed) {
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
