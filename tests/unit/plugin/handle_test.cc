// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/handle.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

namespace ztcp::plugin {
namespace {

using Bytes = std::array<std::byte, kHandleBytes>;

Bytes filled(std::uint8_t value) {
  Bytes bytes;
  bytes.fill(std::byte{value});
  return bytes;
}

PeerHandle peer_with_pattern() {
  PeerHandle peer;
  for (std::size_t i = 0; i < peer.bytes.size(); ++i) peer.bytes[i] = static_cast<std::byte>(i + 1);
  return peer;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(Handle, CarriesAPeerHandleOfEveryKind) {
  for (const auto kind : {TransportKind::kUstack, TransportKind::kSockets, TransportKind::kVerbs}) {
    Bytes handle = filled(0xff);
    PeerHandle peer = peer_with_pattern();
    peer.kind = kind;
    encode_handle(peer, handle);

    const DecodedHandle decoded = decode_handle(handle);
    ASSERT_TRUE(std::holds_alternative<PeerHandle>(decoded));
    EXPECT_EQ(std::get<PeerHandle>(decoded).kind, kind);
    EXPECT_EQ(std::get<PeerHandle>(decoded).bytes, peer.bytes);
  }
}

Issuer issuer_with_pattern() {
  return {.agreement = {.tuner = 3,
                        .tuner_rule = 9,
                        .max_receives = 8,
                        .channels_per_peer = 16,
                        .nics = 0x0102,
                        .devices = 0x0304,
                        .max_message_bytes = 0x05060708,
                        .speed_mbps = 0x090a0b0c},
          .host = "gpu-7"};
}

TEST(Handle, CarriesItsIssuerBesideThePeer) {
  Bytes handle = filled(0xff);
  EXPECT_TRUE(encode_handle(peer_with_pattern(), handle));
  EXPECT_EQ(issuer_of(handle).agreement.devices, 0);
  set_issuer(issuer_with_pattern(), handle);
  EXPECT_EQ(issuer_of(handle).agreement, issuer_with_pattern().agreement);
  EXPECT_EQ(issuer_of(handle).host, "gpu-7");
  EXPECT_TRUE(is_zero(std::span(handle).subspan(40, 40))) << "followed as pointers";
  const DecodedHandle decoded = decode_handle(handle);
  ASSERT_TRUE(std::holds_alternative<PeerHandle>(decoded));
  EXPECT_EQ(std::get<PeerHandle>(decoded).bytes, peer_with_pattern().bytes);
}

// A peer with `count` last bytes that are not zero.
PeerHandle peer_with_last(std::size_t count) {
  PeerHandle peer = peer_with_pattern();
  std::fill(peer.bytes.begin() + PeerHandle::kBaseBytes, peer.bytes.end() - count, std::byte{0});
  return peer;
}

TEST(Handle, TheHostHasTheRoomThatThePeersLastBytesLeave) {
  for (std::size_t count = 0; count <= PeerHandle::kMoreBytes; ++count) {
    Bytes handle = filled(0xff);
    EXPECT_TRUE(encode_handle(peer_with_last(count), handle));
    set_issuer({.agreement = {}, .host = std::string(200, 'h')}, handle);
    EXPECT_EQ(issuer_of(handle).host, std::string(31 - count, 'h'));
    EXPECT_EQ(std::get<PeerHandle>(decode_handle(handle)).bytes, peer_with_last(count).bytes);
  }
}

TEST(Handle, AShortHandleCarriesAtMostSevenOfThePeersLastBytes) {
  for (std::size_t count = 0; count <= PeerHandle::kMoreBytes; ++count) {
    Bytes bytes = filled(0xee);
    const auto handle = std::span(bytes).first(kShortHandleBytes);
    EXPECT_EQ(encode_handle(peer_with_last(count), handle), count <= 7);
    set_issuer(issuer_with_pattern(), handle);
    const PeerHandle expected = peer_with_last(count <= 7 ? count : 0);
    EXPECT_EQ(std::get<PeerHandle>(decode_handle(handle)).bytes, expected.bytes);
    const auto wide = widen(handle);
    EXPECT_EQ(std::get<PeerHandle>(decode_handle(wide)).bytes, expected.bytes);
    EXPECT_EQ(issuer_of(wide).host, "");
  }
}

TEST(Handle, AnImpossibleNumberOfLastBytesCountsAsNone) {
  Bytes handle;
  encode_handle(peer_with_pattern(), handle);
  handle[96] = std::byte{19};
  EXPECT_EQ(std::get<PeerHandle>(decode_handle(handle)).bytes, peer_with_last(0).bytes);
}

TEST(Handle, AShortHandleCarriesItsIssuerWithoutAHost) {
  Bytes bytes = filled(0xee);
  const auto handle = std::span(bytes).first(kShortHandleBytes);
  encode_handle(peer_with_pattern(), handle);
  set_issuer(issuer_with_pattern(), handle);
  EXPECT_TRUE(std::ranges::all_of(std::span(bytes).subspan(kShortHandleBytes),
                                  [](std::byte b) { return b == std::byte{0xee}; }));
  EXPECT_EQ(issuer_of(handle).agreement, issuer_with_pattern().agreement);
  EXPECT_EQ(issuer_of(handle).host, "");
  const auto wide = widen(handle);
  EXPECT_EQ(issuer_of(wide).agreement, issuer_with_pattern().agreement);
  EXPECT_EQ(issuer_of(wide).host, "");
  EXPECT_EQ(connect_state(wide), nullptr);
  EXPECT_TRUE(std::holds_alternative<PeerHandle>(decode_handle(wide)));
}

TEST(Handle, AHostileHostOfAnIssuerStaysPrintable) {
  Bytes handle;
  encode_handle(peer_with_pattern(), handle);
  set_issuer({.agreement = {}, .host = "a\nb\x1b[31m"}, handle);
  EXPECT_EQ(issuer_of(handle).host, "a?b?[31m");
}

TEST(Handle, BytesThatOtherNetworksFollowAreZero) {
  Bytes handle = filled(0xff);
  encode_handle(peer_with_pattern(), handle);
  EXPECT_TRUE(is_zero(std::span(handle).first(2))) << "read as an address family";
  EXPECT_TRUE(is_zero(std::span(handle).subspan(40, 32))) << "followed as pointers";
}

TEST(Handle, WritesOnlySixtyFourBytesForOldTables) {
  Bytes handle = filled(0xee);
  encode_handle(peer_with_pattern(), std::span(handle).first(kShortHandleBytes));
  EXPECT_TRUE(is_zero(std::span(handle).subspan(40, 24)));
  EXPECT_TRUE(std::ranges::all_of(std::span(handle).subspan(kShortHandleBytes),
                                  [](std::byte b) { return b == std::byte{0xee}; }));
  EXPECT_TRUE(std::holds_alternative<PeerHandle>(
      decode_handle(std::span(handle).first(kShortHandleBytes))));
}

TEST(Handle, PoisonCarriesReasonAndHost) {
  Bytes handle;
  encode_handle(Poison{Errc::kNoDevice, "gpu-7"}, handle);
  const DecodedHandle decoded = decode_handle(handle);
  ASSERT_TRUE(std::holds_alternative<Poison>(decoded));
  EXPECT_EQ(std::get<Poison>(decoded).reason, Errc::kNoDevice);
  EXPECT_EQ(std::get<Poison>(decoded).host, "gpu-7");
  EXPECT_FALSE(std::get<Poison>(decoded).unshown);
  EXPECT_TRUE(is_zero(std::span(handle).subspan(40)));
}

TEST(Handle, PoisonNamesAMissingDevice) {
  for (const int device : {-1, 5, 32767}) {
    Bytes handle;
    encode_handle(Poison{Errc::kNoDevice, "gpu-7",
                         Poison::Unshown{.device = static_cast<std::int16_t>(device), .shown = 4}},
                  handle);
    const auto poison = std::get<Poison>(decode_handle(handle));
    ASSERT_TRUE(poison.unshown);
    EXPECT_EQ(poison.unshown->device, device);
    EXPECT_EQ(poison.unshown->shown, 4);
    EXPECT_EQ(poison.host, "gpu-7");
  }
}

TEST(Handle, PoisonCutsALongHostAndNothingElse) {
  Bytes handle;
  encode_handle(Poison{Errc::kBadConfig, std::string(200, 'h')}, handle);
  EXPECT_EQ(std::get<Poison>(decode_handle(handle)).host, std::string(Poison::kMaxHost, 'h'));
  EXPECT_TRUE(is_zero(std::span(handle).subspan(40)));
}

TEST(Handle, PoisonFromAHostileHostStaysPrintable) {
  Bytes handle;
  encode_handle(Poison{Errc::kBadConfig, "a\nb\x1b[31m"}, handle);
  handle[6] = std::byte{0xfe};  // Not a valid reason.
  const auto poison = std::get<Poison>(decode_handle(handle));
  EXPECT_EQ(poison.host, "a?b?[31m");
  EXPECT_EQ(poison.reason, Errc::kSystem);
}

TEST(Handle, NamesTheHostOfASocketHandle) {
  Bytes handle = filled(0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(40001);
  inet_pton(AF_INET, "10.1.2.3", &address.sin_addr);
  std::memcpy(handle.data(), &address, sizeof address);
  const DecodedHandle decoded = decode_handle(handle);
  ASSERT_TRUE(std::holds_alternative<ForeignHandle>(decoded));
  EXPECT_EQ(std::get<ForeignHandle>(decoded).peer, "10.1.2.3");
}

TEST(Handle, NamesTheHostOfAnIpv6SocketHandle) {
  Bytes handle = filled(0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  inet_pton(AF_INET6, "fd00::7", &address.sin6_addr);
  std::memcpy(handle.data(), &address, sizeof address);
  EXPECT_EQ(std::get<ForeignHandle>(decode_handle(handle)).peer, "fd00::7");
}

TEST(Handle, RandomBytesAreAForeignHandle) {
  for (const int value : {0x00, 0x5a, 0xff}) {
    const Bytes handle = filled(static_cast<std::uint8_t>(value));
    EXPECT_TRUE(std::holds_alternative<ForeignHandle>(decode_handle(handle))) << value;
  }
}

TEST(Handle, DistinguishesAnotherVersionFromAnotherNetwork) {
  Bytes handle;
  encode_handle(peer_with_pattern(), handle);
  // 1: it had an IPv4-mapped address in place of the watch's, and other numbers of reasons.
  for (const unsigned version : {1U, 6U, 8U}) {
    handle[5] = static_cast<std::byte>(version << 4U | 1U);
    const DecodedHandle decoded = decode_handle(handle);
    ASSERT_TRUE(std::holds_alternative<OtherVersion>(decoded));
    EXPECT_EQ(std::get<OtherVersion>(decoded).version, version);
  }
}

TEST(Handle, DistinguishesAnUnknownKindFromAnotherVersion) {
  Bytes handle;
  encode_handle(peer_with_pattern(), handle);
  for (const unsigned kind : {0U, 5U, 7U, 9U}) {
    handle[5] = static_cast<std::byte>(unsigned{kHandleVersion} << 4U | kind);
    const DecodedHandle decoded = decode_handle(handle);
    ASSERT_TRUE(std::holds_alternative<UnknownKind>(decoded));
    EXPECT_EQ(std::get<UnknownKind>(decoded).kind, kind);
  }
}

TEST(Handle, KeepsTheConnectStateBesideThePeer) {
  Bytes handle;
  encode_handle(peer_with_pattern(), handle);
  EXPECT_EQ(connect_state(handle), nullptr);
  int attempt = 0;
  set_connect_state(handle, &attempt);
  EXPECT_EQ(connect_state(handle), &attempt);
  EXPECT_TRUE(is_zero(std::span(handle).subspan(40, 32))) << "still clean where others look";
  EXPECT_TRUE(std::holds_alternative<PeerHandle>(decode_handle(handle)));
}

}  // namespace
}  // namespace ztcp::plugin
