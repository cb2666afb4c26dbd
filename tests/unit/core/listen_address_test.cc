// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/listen_address.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

ListenAddress listener(const char* text, const char* watch = nullptr) {
  ListenAddress out{.endpoint = {*parse_ip(text), 7471}, .watch = {}};
  if (watch != nullptr) out.watch = {*parse_ip(watch), 40001};
  std::generate(out.cookie.begin(), out.cookie.end(), [n = 1]() mutable { return std::byte(n++); });
  return out;
}

void expect_round_trip(const ListenAddress& sent) {
  const auto parsed = parse_listen_address(to_bytes(sent));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->endpoint, sent.endpoint);
  EXPECT_EQ(parsed->watch, sent.watch);
  EXPECT_EQ(parsed->cookie, sent.cookie);
  EXPECT_EQ(parsed->in_shared_memory, sent.in_shared_memory);
  EXPECT_EQ(parsed->shares_nic, sent.shares_nic);
}

ListenAddress in_shared_memory(ListenAddress address) {
  address.in_shared_memory = true;
  return address;
}

ListenAddress sharing(ListenAddress address) {
  address.shares_nic = true;
  return address;
}

TEST(ListenAddress, RoundTripKeepsAllFields) {
  expect_round_trip(sharing(listener("10.77.1.254")));
  expect_round_trip(sharing(listener("10.77.1.254", "10.0.0.7")));
  expect_round_trip(sharing(listener("10.77.1.254", "2001:db8::7")));
  expect_round_trip(sharing(listener("2001:db8::1")));
  expect_round_trip(sharing(listener("2001:db8::1", "10.0.0.7")));
  expect_round_trip(sharing(listener("2001:db8::1", "2001:db8::1")));
  expect_round_trip(listener("10.77.1.254"));
  expect_round_trip(listener("10.77.1.254", "10.0.0.7"));
  expect_round_trip(in_shared_memory(listener("10.99.0.1")));
  expect_round_trip(in_shared_memory(listener("10.99.0.1", "127.0.0.1")));
  expect_round_trip(listener("10.77.1.254", "2001:db8::7"));
  expect_round_trip(in_shared_memory(listener("10.99.0.1", "::1")));
  expect_round_trip(in_shared_memory(listener("fd00::1")));
  expect_round_trip(in_shared_memory(listener("fd00::1", "127.0.0.1")));
  expect_round_trip(in_shared_memory(listener("fd00::1", "::1")));
  expect_round_trip(listener("2001:db8::1"));
  expect_round_trip(listener("2001:db8::1", "2001:db8::7"));
  expect_round_trip(listener("2001:db8::1", "10.0.0.7"));
  expect_round_trip(listener("2001:db8::1", "::1"));
  expect_round_trip(listener("fe80::5054:ff:fe77:10a"));
}

// It is the loopback address nearly always.
TEST(ListenAddress, InSharedMemoryAnIpv6AddressLeavesOutAnotherWatch) {
  const auto parsed =
      parse_listen_address(to_bytes(in_shared_memory(listener("fd00::1", "2001:db8::7"))));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_string(parsed->endpoint), "[fd00::1]:7471");
  EXPECT_TRUE(parsed->in_shared_memory);
  EXPECT_EQ(parsed->watch.port, 0);
}

// All peers of one handle version agree on these bytes.
TEST(ListenAddress, BytesHaveTheLayoutOfTheHeader) {
  const auto at = [](const ListenAddress::Bytes& bytes, std::size_t i) {
    return std::to_integer<int>(bytes[i]);
  };
  const ListenAddress::Bytes one = to_bytes(listener("2001:db8::1"));
  EXPECT_EQ(at(one, 0), 0x20);
  EXPECT_EQ(at(one, 15), 1);
  const ListenAddress::Bytes six = to_bytes(listener("2001:db8::1", "2001:db8::7"));
  EXPECT_EQ(at(six, 34), 0x20);
  EXPECT_EQ(at(six, 49), 7);
  EXPECT_EQ(at(six, 50) << 8 | at(six, 51), 40001);
  const ListenAddress::Bytes mixed = to_bytes(listener("2001:db8::1", "10.0.0.7"));
  EXPECT_TRUE(std::all_of(mixed.begin() + 34, mixed.begin() + 46,
                          [](std::byte b) { return b == std::byte{}; }));
  EXPECT_EQ(at(mixed, 46), 10);
  EXPECT_EQ(at(mixed, 49), 7);
  const ListenAddress::Bytes two = to_bytes(listener("10.77.1.254", "10.0.0.7"));
  EXPECT_EQ(at(two, 0), 0xff);
  EXPECT_EQ(at(two, 6) << 8 | at(two, 7), 40001);
  EXPECT_EQ(at(two, 11), 7);
  for (const auto& bytes : {to_bytes(listener("10.77.1.254")), two}) {
    EXPECT_EQ(at(bytes, 12), 10);
    EXPECT_EQ(at(bytes, 15), 254);
    EXPECT_EQ(at(bytes, 16) << 8 | at(bytes, 17), 7471);
    EXPECT_EQ(at(bytes, 18), 1);
    EXPECT_EQ(at(bytes, 33), 16);
  }
}

TEST(ListenAddress, ImpossibleBytesAreRefused) {
  ListenAddress::Bytes bytes = to_bytes(listener("10.77.1.1", "10.0.0.7"));
  for (std::size_t i = 1; i < 6; ++i) {
    ListenAddress::Bytes reserved = bytes;
    reserved[i] = std::byte{2};
    EXPECT_FALSE(parse_listen_address(reserved)) << i;
  }
  for (const int flags : {2, 5, 7, 8}) {
    ListenAddress::Bytes unknown = to_bytes(sharing(listener("10.77.1.1")));
    unknown[1] = static_cast<std::byte>(flags);
    EXPECT_FALSE(parse_listen_address(unknown)) << flags;
  }
  ListenAddress::Bytes no_watch = bytes;
  no_watch[6] = no_watch[7] = std::byte{};
  EXPECT_FALSE(parse_listen_address(no_watch));
  ListenAddress::Bytes shared = to_bytes(in_shared_memory(listener("10.77.1.1")));
  shared[1] = std::byte{2};
  EXPECT_FALSE(parse_listen_address(shared));
  shared[1] = std::byte{1};
  EXPECT_TRUE(parse_listen_address(shared));
  shared[8] = std::byte{10};
  EXPECT_FALSE(parse_listen_address(shared)) << "the address of no watch";
  // The handles of NCCL before 2.12 have no room for the last bytes.
  ListenAddress::Bytes shorter = to_bytes(in_shared_memory(listener("fd00::1")));
  std::fill(shorter.begin() + ListenAddress::kBaseBytes, shorter.end(), std::byte{});
  EXPECT_FALSE(parse_listen_address(shorter));
  ListenAddress::Bytes two_addresses = to_bytes(in_shared_memory(listener("fd00::1")));
  two_addresses[15] = std::byte{1};
  EXPECT_FALSE(parse_listen_address(two_addresses));
  ListenAddress::Bytes twice = bytes;
  twice[51] = std::byte{7};
  EXPECT_FALSE(parse_listen_address(twice)) << "two watches";
  ListenAddress::Bytes without_port = to_bytes(listener("2001:db8::1", "2001:db8::7"));
  without_port[50] = without_port[51] = std::byte{};
  EXPECT_FALSE(parse_listen_address(without_port));
  bytes[16] = bytes[17] = std::byte{};
  EXPECT_FALSE(parse_listen_address(bytes));
  ASSERT_FALSE(parse_listen_address({}));
  EXPECT_EQ(parse_listen_address({}).error().code, Errc::kProtocol);
}

}  // namespace
}  // namespace ztcp
