// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/listener.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

TEST(ListenAddress, ReadsBackWhatWasWritten) {
  ParsedListenAddress address{{*parse_ipv4("10.77.1.254"), 7471}, {*parse_ipv4("10.0.0.7"), 40001}};
  std::generate(address.cookie.begin(), address.cookie.end(),
                [n = 1]() mutable { return std::byte(n++); });
  const auto parsed = parse_listen_address(to_listen_address(address));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->endpoint, address.endpoint);
  EXPECT_EQ(parsed->watch, address.watch);
  EXPECT_EQ(parsed->cookie, address.cookie);
}

// The family, and what is reserved.
TEST(ListenAddress, AnAddressThatIsNotIpv4IsRefused) {
  for (const std::size_t at : {6U, 7U, 8U, 11U}) {
    ListenAddress address = to_listen_address({{*parse_ipv4("10.77.1.1"), 1}, {}, {}});
    address.bytes[at] = std::byte{0xfd};
    const auto parsed = parse_listen_address(address);
    ASSERT_FALSE(parsed) << at;
    EXPECT_EQ(parsed.error().code, Errc::kProtocol);
  }
}

}  // namespace
}  // namespace ztcp::ustack
