// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/pending_victim.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

struct Pending {
  IpAddress address;
  bool may_go = true;
  std::string name;
};

std::string victim(const std::vector<Pending>& all) {
  const auto found =
      pending_victim(all, [](const Pending& one) { return one.may_go ? &one.address : nullptr; });
  return found == all.end() ? "none" : found->name;
}

IpAddress host(std::uint32_t number) { return Ipv4Address{number}; }

TEST(PendingVictim, IsTheOldestOfTheAddressWithMost) {
  EXPECT_EQ(victim({{host(1), true, "peer"}, {host(2), true, "a"}, {host(2), true, "b"}}), "a");
}

TEST(PendingVictim, IsTheOldestWhereEachAddressHasOne) {
  EXPECT_EQ(victim({{host(1), true, "first"}, {host(2), true, "second"}}), "first");
}

TEST(PendingVictim, AConnectionThatSentItsHelloStays) {
  EXPECT_EQ(victim({{host(1), false, "peer"}, {host(1), false, "peer"}, {host(2), true, "a"}}),
            "a");
  EXPECT_EQ(victim({{host(1), false, "peer"}}), "none");
  EXPECT_EQ(victim({}), "none");
}

TEST(PendingVictim, Ipv6AddressesAreCountedSeparately) {
  const IpAddress one{0x20010db8'00000000, 1};
  const IpAddress other{0x20010db8'00000000, 2};
  EXPECT_EQ(victim({{one, true, "peer"}, {other, true, "a"}, {other, true, "b"}}), "a");
}

}  // namespace
}  // namespace ztcp
