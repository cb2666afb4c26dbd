// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/listener.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

TEST(ListenAddress, ReadsBackWhatWasWritten) {
  ListenAddress address{{*parse_ipv4("10.77.1.254"), 7471}, {*parse_ipv4("10.0.0.7"), 40001}};
  std::generate(address.cookie.begin(), address.cookie.end(),
                [n = 1]() mutable { return std::byte(n++); });
  const auto parsed = parse_handle(to_handle(address));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->endpoint, address.endpoint);
  EXPECT_EQ(parsed->watch, address.watch);
  EXPECT_EQ(parsed->cookie, address.cookie);
}

// The family, and what is reserved.
TEST(ListenAddress, AnAddressThatIsNotIpv4IsRefused) {
  for (const std::size_t at : {6U, 7U, 8U, 11U}) {
    PeerHandle handle = to_handle({{*parse_ipv4("10.77.1.1"), 1}, {}, {}});
    handle.bytes[at] = std::byte{0xfd};
    const auto parsed = parse_handle(handle);
    ASSERT_FALSE(parsed) << at;
    EXPECT_EQ(parsed.error().code, Errc::kProtocol);
  }
}

}  // namespace
}  // namespace ztcp::ustack
