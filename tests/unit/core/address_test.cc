// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/address.h"

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(Address, TextSurvivesTheRoundTrip) {
  EXPECT_EQ(to_string(*parse_mac("52:54:00:77:01:0A")), "52:54:00:77:01:0a");
  EXPECT_EQ(to_string(*parse_ipv4("10.77.1.255")), "10.77.1.255");
  EXPECT_EQ(to_string(*parse_ipv4_prefix("10.77.1.10/24")), "10.77.1.10/24");
}

// RFC 5952 section 4: lower case, no leading zeros, the longest run of zeros as "::", the first of
// equals, and never a single one.
TEST(Address, Ipv6TextHasTheCanonicalFormOfRfc5952) {
  const auto written = [](const char* text) { return to_string(*parse_ip(text)); };
  EXPECT_EQ(written("2001:0DB8:0:0:0:0:0:1"), "2001:db8::1");
  EXPECT_EQ(written("2001:db8:0:1:1:1:1:1"), "2001:db8:0:1:1:1:1:1");
  EXPECT_EQ(written("2001:0:0:1:0:0:0:1"), "2001:0:0:1::1");
  EXPECT_EQ(written("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
  EXPECT_EQ(written("fe80::"), "fe80::");
  EXPECT_EQ(to_string(IpAddress()), "::");
  EXPECT_EQ(*parse_ip("fe80::1:2"), IpAddress(0xfe80ULL << 48, 0x10002));
}

TEST(Address, Ipv4IsAnAddressLikeAnyOther) {
  const IpAddress address = *parse_ipv4("10.77.1.255");
  EXPECT_TRUE(address.is_v4());
  EXPECT_EQ(address.v4(), *parse_ipv4("10.77.1.255"));
  EXPECT_EQ(to_string(address), "10.77.1.255");
  EXPECT_EQ(parse_ip("10.77.1.255"), address);
  EXPECT_EQ(parse_ip("::ffff:10.77.1.255"), address);
  EXPECT_FALSE(IpAddress().is_v4());
  EXPECT_FALSE(parse_ip("::10.77.1.255")->is_v4());
  EXPECT_FALSE(parse_ip("1::ffff:10.77.1.255")->is_v4());
  EXPECT_NE(IpAddress(Ipv4Address{}), IpAddress());
}

TEST(Address, EndpointTextHasBracketsAroundIpv6) {
  EXPECT_EQ(to_string(Endpoint{*parse_ip("2001:db8::1"), 7471}), "[2001:db8::1]:7471");
  EXPECT_EQ(to_string(Endpoint{*parse_ip("10.0.0.1"), 7471}), "10.0.0.1:7471");
}

TEST(Address, PrefixContainsAddressesOfItsNetwork) {
  const Ipv4Prefix prefix = *parse_ipv4_prefix("10.77.1.10/24");
  EXPECT_TRUE(prefix.contains(*parse_ipv4("10.77.1.200")));
  EXPECT_FALSE(prefix.contains(*parse_ipv4("10.77.2.10")));
  EXPECT_TRUE(parse_ipv4_prefix("0.0.0.0/0")->contains(*parse_ipv4("8.8.8.8")));
}

TEST(Address, PrefixRejectsReservedAndBroadcastAddressesAsHosts) {
  const Ipv4Prefix prefix = *parse_ipv4_prefix("10.77.1.10/24");
  for (const char* text : {"10.77.1.1", "10.77.1.254", "10.77.2.0", "10.77.2.255", "8.8.8.8",
                           "169.254.1.1", "223.255.255.254"})
    EXPECT_TRUE(prefix.may_be_host(*parse_ipv4(text))) << text;
  for (const char* text :
       {"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.255", "224.0.0.1", "239.255.255.255",
        "240.0.0.1", "255.255.255.255", "10.77.1.0", "10.77.1.255"})
    EXPECT_FALSE(prefix.may_be_host(*parse_ipv4(text))) << text;
  // RFC 3021, and a cloud's /32.
  EXPECT_TRUE(parse_ipv4_prefix("10.0.0.1/31")->may_be_host(*parse_ipv4("10.0.0.0")));
  EXPECT_TRUE(parse_ipv4_prefix("10.0.0.255/32")->may_be_host(*parse_ipv4("10.0.0.255")));
  EXPECT_TRUE(parse_ipv4_prefix("10.0.0.255/32")->may_be_host(*parse_ipv4("10.0.1.255")));
}

TEST(Address, PrefixesOfBothFamiliesContainAddressesOfTheirNetwork) {
  const IpPrefix v6 = *parse_ip_prefix("2001:db8:0:7::5/64");
  EXPECT_TRUE(v6.contains(*parse_ip("2001:db8:0:7:ffff::1")));
  EXPECT_FALSE(v6.contains(*parse_ip("2001:db8:0:8::5")));
  EXPECT_FALSE(v6.contains(*parse_ip("10.0.0.5")));
  EXPECT_TRUE(parse_ip_prefix("2001:db8::4/127")->contains(*parse_ip("2001:db8::5")));
  EXPECT_FALSE(parse_ip_prefix("2001:db8::4/127")->contains(*parse_ip("2001:db8::6")));
  EXPECT_TRUE(parse_ip_prefix("::1/0")->contains(*parse_ip("2001:db8::6")));
  EXPECT_FALSE(parse_ip_prefix("::1/0")->contains(*parse_ip("10.0.0.5")));
  const IpPrefix v4 = *parse_ip_prefix("10.77.1.10/24");
  EXPECT_EQ(v4, IpPrefix(*parse_ipv4_prefix("10.77.1.10/24")));
  EXPECT_EQ(v4.v4(), *parse_ipv4_prefix("10.77.1.10/24"));
  EXPECT_TRUE(v4.contains(*parse_ip("10.77.1.200")));
  EXPECT_FALSE(v4.contains(*parse_ip("10.77.2.10")));
  EXPECT_FALSE(v4.contains(*parse_ip("::10.77.1.200")));
  EXPECT_TRUE(parse_ip_prefix("10.0.0.1/0")->contains(*parse_ip("8.8.8.8")));
}

TEST(Address, PrefixesOfEitherFamilyAreReadAndWritten) {
  for (const char* text : {"10.0.0.1/24", "10.0.0.1/32", "2001:db8::1/64", "fe80::1/128", "::/0"})
    EXPECT_EQ(to_string(*parse_ip_prefix(text)), text);
  for (const char* text : {"10.0.0.1/33", "::1/129", "::1", "::1/", "/64", "::1/064",
                           "fe80::1%2/64", "[::1]/64", "::1/-1", "::1/64 "})
    EXPECT_FALSE(parse_ip_prefix(text)) << text;
  EXPECT_FALSE(parse_ipv4_prefix("::ffff:10.0.0.1/24"));
  EXPECT_FALSE(parse_ipv4_prefix("2001:db8::1/64"));
}

TEST(Address, LinkLocalAddressesAreRecognised) {
  EXPECT_TRUE(parse_ip("fe80::1")->is_link_local_v6());
  EXPECT_TRUE(parse_ip("febf::1")->is_link_local_v6());
  EXPECT_FALSE(parse_ip("fec0::1")->is_link_local_v6());
  EXPECT_FALSE(parse_ip("169.254.0.1")->is_link_local_v6());
  for (const char* own : {"169.254.0.1", "169.254.255.255", "fe80::1"})
    EXPECT_TRUE(parse_ip(own)->is_link_local()) << own;
  for (const char* given : {"169.253.255.255", "169.255.0.0", "10.0.0.1", "fec0::1"})
    EXPECT_FALSE(parse_ip(given)->is_link_local()) << given;
}

class Rejected : public testing::TestWithParam<const char*> {};

TEST_P(Rejected, IsNoAddressOfAnyKind) {
  EXPECT_FALSE(parse_mac(GetParam()));
  EXPECT_FALSE(parse_ipv4(GetParam()));
  EXPECT_FALSE(parse_ipv4_prefix(GetParam()));
  EXPECT_FALSE(parse_ip(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Texts, Rejected,
                         testing::Values("", "10.0.0", "10.0.0.256", "10.0.0.1 ", "010.0.0.1",
                                         "10.0.0.1/33", "10.0.0.1/", "52:54:00:77:01",
                                         "52:54:00:77:01:0g", "52-54-00-77-01-0a", "-1.0.0.1",
                                         "2001:db8:::1", "2001:db8::1::2", "2001:db8::12345",
                                         "[::1]", "::1%lo", "::1/128", "::1 "));

}  // namespace
}  // namespace ztcp
