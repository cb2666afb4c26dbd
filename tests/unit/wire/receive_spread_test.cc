// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/receive_spread.h"

#include <array>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::wire {
namespace {

// The key and results that NIC vendors publish for verification.
constexpr std::array<std::uint8_t, 40> kKey = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

ReceiveSpread spread(bool hashes_ports) {
  ReceiveSpread out;
  for (const std::uint8_t byte : kKey) out.key.push_back(std::byte{byte});
  for (std::uint16_t i = 0; i < 128; ++i) out.table.push_back(i % 5);
  out.hashes_ports = hashes_ports;
  return out;
}

Endpoint endpoint(const char* address, std::uint16_t port) {
  return {*ztcp::parse_ip(address), port};
}

TEST(ReceiveSpreadTest, HashMatchesThePublishedResults) {
  const struct {
    Endpoint source;
    Endpoint destination;
    std::uint32_t with_ports;
    std::uint32_t addresses_only;
  } rows[] = {
      {endpoint("66.9.149.187", 2794), endpoint("161.142.100.80", 1766), 0x51ccc178, 0x323e8fc2},
      {endpoint("199.92.111.2", 14230), endpoint("65.69.140.83", 4739), 0xc626b0ea, 0xd718262a},
      {endpoint("24.19.198.95", 12898), endpoint("12.22.207.184", 38024), 0x5c2b394a, 0xd2d0a5de},
      {endpoint("38.27.205.30", 48228), endpoint("209.142.163.6", 2217), 0xafc7327f, 0x82989176},
      {endpoint("153.39.163.191", 44251), endpoint("202.188.127.2", 1303), 0x10e828a2, 0x5d1809c5},
      {endpoint("3ffe:2501:200:1fff::7", 2794), endpoint("3ffe:2501:200:3::1", 1766), 0x40207d3d,
       0x2cc18cd5},
      {endpoint("3ffe:501:8::260:97ff:fe40:efab", 14230), endpoint("ff02::1", 4739), 0xdde51bbf,
       0x0f0c461c},
      {endpoint("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251),
       endpoint("fe80::200:f8ff:fe21:67cf", 38024), 0x02d1feef, 0x4b61e985},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(spread(true).hash(row.source, row.destination), row.with_ports);
    EXPECT_EQ(spread(false).hash(row.source, row.destination), row.addresses_only);
    EXPECT_EQ(spread(true).queue_of(row.source, row.destination), row.with_ports % 128 % 5);
  }
}

TEST(ReceiveSpreadTest, AnIncompleteSpreadIsDetected) {
  EXPECT_TRUE(spread(true).is_complete(/*is_ipv6=*/false));
  ReceiveSpread short_key = spread(true);
  EXPECT_TRUE(short_key.is_complete(/*is_ipv6=*/true));
  short_key.key.resize(39);
  EXPECT_FALSE(short_key.is_complete(/*is_ipv6=*/true));
  EXPECT_TRUE(short_key.is_complete(/*is_ipv6=*/false));
  short_key.key.resize(15);
  EXPECT_FALSE(short_key.is_complete(/*is_ipv6=*/false));
  ReceiveSpread no_table = spread(true);
  no_table.table.clear();
  EXPECT_FALSE(no_table.is_complete(/*is_ipv6=*/false));
}

}  // namespace
}  // namespace ztcp::wire
