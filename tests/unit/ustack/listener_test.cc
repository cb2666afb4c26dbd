// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/listener.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

TEST(ListenAddress, ReadsBackWhatWasWritten) {
  const Endpoint endpoint{*parse_ipv4("10.77.1.254"), 7471};
  msg::Cookie cookie;
  std::generate(cookie.begin(), cookie.end(), [n = 1]() mutable { return std::byte(n++); });
  const auto parsed = parse_listen_address(to_listen_address(endpoint, cookie));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->endpoint, endpoint);
  EXPECT_EQ(parsed->cookie, cookie);
}

TEST(ListenAddress, AnAddressThatIsNotIpv4IsRefused) {
  ListenAddress address = to_listen_address({*parse_ipv4("10.77.1.1"), 1}, {});
  address.bytes[0] = std::byte{0xfd};
  const auto parsed = parse_listen_address(address);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Errc::kProtocol);
}

}  // namespace
}  // namespace ztcp::ustack
