// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Router advertisements and solicitations.
#include "transport/wire/router_advertisement.h"

#include <array>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/router_advertisement.h"
#include "transport/wire/checksum.h"

namespace ztcp::wire {
namespace {

constexpr IpAddress kFromRouter{0xfe80ULL << 48, 1};

struct Advertised {
  IpHeader ip;
  std::vector<std::byte> message;

  Advertised() : message(kRouterAdvertisementBytes + kMacOptionBytes) {
    ip.source = kFromRouter;
    ip.destination = kAllNodes;
    ip.protocol = IpProtocol::kIcmpv6;
    ip.hop_limit = 255;
    ip.header_bytes = kIpv6Bytes;
    store_u8(message.data(), 134);
    store_be16(message.data() + 6, 1800);
    store_u8(message.data() + 16, 1);  // The router's MAC address.
    store_u8(message.data() + 17, 1);
  }
  std::optional<RouterAdvertisement> parse() const {
    return parse_router_advertisement(ip, message);
  }
};

TEST(RouterAdvertisements, HaveALifetimeAndAPreference) {
  Advertised a;
  ASSERT_TRUE(a.parse());
  EXPECT_EQ(a.parse()->lifetime, std::chrono::seconds(1800));
  // RFC 4191 section 2.1; 2 is reserved.
  constexpr std::array kMeanings{RouterPreference::kMedium, RouterPreference::kHigh,
                                 RouterPreference::kMedium, RouterPreference::kLow};
  for (unsigned bits = 0; bits < kMeanings.size(); ++bits) {
    store_u8(a.message.data() + 5, static_cast<std::uint8_t>(0xe7U | bits << 3));
    EXPECT_EQ(a.parse()->preference, kMeanings[bits]) << bits;
  }
}

TEST(RouterAdvertisements, HavePrefixesForAddresses) {
  constexpr IpAddress kPrefix{0x2001'0db8'0000'0001ULL, 0};
  Advertised a;
  const auto add = [&](const test::PrefixOption& from) {
    const auto option = test::prefix_option(from);
    a.message.insert(a.message.end(), option.begin(), option.end());
  };
  add({.prefix = kPrefix, .flags = test::kOnLinkFlag});  // Not for addresses.
  add({.prefix = kPrefix, .valid_s = 7, .preferred_s = 5, .flags = test::kAutonomousFlag});
  add({.prefix = kPrefix, .valid_s = UINT32_MAX, .length = 200});
  ASSERT_TRUE(a.parse());
  ASSERT_EQ(a.parse()->prefix_count, 2U);
  const AdvertisedPrefix first = a.parse()->prefixes[0];
  EXPECT_EQ(first.prefix, (IpPrefix{kPrefix, 64}));
  EXPECT_FALSE(first.is_on_link);
  EXPECT_EQ(first.valid, std::chrono::seconds(7));
  EXPECT_EQ(first.preferred, std::chrono::seconds(5));
  const AdvertisedPrefix second = a.parse()->prefixes[1];
  EXPECT_TRUE(second.is_on_link);
  EXPECT_EQ(second.prefix.length, 200);
  EXPECT_GT(second.valid, std::chrono::hours(24 * 365 * 100));
  for (int i = 0; i < 20; ++i) add({.prefix = kPrefix});
  EXPECT_EQ(a.parse()->prefix_count, RouterAdvertisement::kMostPrefixes);
  a.message.resize(a.message.size() - 1);
  EXPECT_FALSE(a.parse());
  const std::vector<std::byte> shorter(24, std::byte{3});
  EXPECT_FALSE(parse_prefix_option(3, shorter));
}

// RFC 4861 section 6.1.2.
TEST(RouterAdvertisements, AreDiscardedAsTheRfcSays) {
  const std::vector<std::function<void(Advertised&)>> faults = {
      [](Advertised& a) { a.ip.hop_limit = 254; },
      [](Advertised& a) { a.ip.header_bytes += 8; },
      [](Advertised& a) {
        a.ip.source = {0xfd00ULL << 48, 1};
      },
      [](Advertised& a) { a.ip.source = IpAddress(); },
      [](Advertised& a) { a.message[1] = std::byte{1}; },  // Another code.
      [](Advertised& a) { a.message.resize(15); },
      [](Advertised& a) { a.message.resize(20); },          // Half an option.
      [](Advertised& a) { a.message[17] = std::byte{0}; },  // An empty option.
      [](Advertised& a) { a.message[17] = std::byte{2}; },  // Longer than the message.
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Advertised a;
    faults[i](a);
    EXPECT_FALSE(a.parse()) << i;
  }
}

TEST(RouterSolicitations, HaveNoOptionAndAGoodChecksum) {
  std::array<std::byte, kRouterSolicitationBytes> message;
  ASSERT_EQ(emit_router_solicitation(message.data()), message.size());
  EXPECT_EQ(message[0], std::byte{133});
  Checksum sum =
      pseudo_header_checksum(IpAddress(), kAllRouters, message.size(), IpProtocol::kIcmpv6);
  sum.add(message);
  EXPECT_TRUE(sum.is_good());
}

}  // namespace
}  // namespace ztcp::wire
