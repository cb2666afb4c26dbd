// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/socket_address.h"

#include <arpa/inet.h>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(SocketAddress, EqualsItsEndpoint) {
  const Endpoint v4{*parse_ip("10.77.1.254"), 7471};
  const SocketAddress of_v4 = to_socket_address(v4);
  EXPECT_EQ(of_v4.family(), AF_INET);
  EXPECT_EQ(of_v4.size_bytes, sizeof(sockaddr_in));
  sockaddr_in in{};
  std::memcpy(&in, of_v4.get(), sizeof in);
  EXPECT_EQ(in.sin_port, htons(7471));
  EXPECT_EQ(in.sin_addr.s_addr, inet_addr("10.77.1.254"));
  EXPECT_EQ(to_endpoint(of_v4), v4);

  const Endpoint v6{*parse_ip("2001:db8::1"), 7471};
  const SocketAddress of_v6 = to_socket_address(v6);
  EXPECT_EQ(of_v6.family(), AF_INET6);
  EXPECT_EQ(of_v6.size_bytes, sizeof(sockaddr_in6));
  sockaddr_in6 in6{};
  std::memcpy(&in6, of_v6.get(), sizeof in6);
  EXPECT_EQ(in6.sin6_port, htons(7471));
  EXPECT_EQ(in6.sin6_addr.s6_addr[0], 0x20);
  EXPECT_EQ(in6.sin6_addr.s6_addr[15], 1);
  EXPECT_EQ(to_endpoint(of_v6), v6);
}

}  // namespace
}  // namespace ztcp
