// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Effects of ICMP on connections (RFC 9293 section 3.9.2.2, RFC 5927). Path MTU is in
// path_probe_test.cc.
#include "transport/wire/icmp.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"

namespace ztcp::tcp::test {
namespace {

using wire::IcmpError;

constexpr std::size_t kIcmpAt = kIpAt + wire::kIpv4Bytes;
constexpr Ipv4Address kRouter{0x0a0000fe};

Bytes packet(Ipv4Address from, const Bytes& message) {
  Bytes bytes(kIcmpAt);
  wire::emit_ethernet({.destination = kOurMac, .source = kPeerMac}, bytes.data());
  wire::emit_ipv4({.source = from,
                   .destination = kOurIp,
                   .protocol = wire::IpProtocol::kIcmp,
                   .total_bytes = static_cast<std::uint16_t>(wire::kIpv4Bytes + message.size())},
                  bytes.data() + kIpAt);
  bytes.insert(bytes.end(), message.begin(), message.end());
  return bytes;
}

Bytes ping() {
  Bytes message(64);
  wire::store_u8(message.data(), 8);
  wire::store_be16(message.data() + 2, wire::internet_checksum(message));
  return packet(kPeerIp, message);
}

class Unreachable : public testing::Test {
 protected:
  void connect() {
    const auto stream = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
    ASSERT_TRUE(stream);
    peer.user.stream = *stream;
    peer.iss = peer.collect_one().seq;
  }
  Bytes error(IcmpError::Type type, std::uint8_t code, std::uint32_t sequence) const {
    Bytes message(wire::kEmittedIcmpErrorBytes);
    wire::emit_icmp_error({.type = type,
                           .code = code,
                           .source = {kOurIp, peer.our_port},
                           .destination = {kPeerIp, peer.peer_port},
                           .sequence = sequence},
                          message.data());
    message.resize(message.size() + 100);  // Routers quote more than required.
    wire::store_be16(message.data() + 2, 0);
    wire::store_be16(message.data() + 2, wire::internet_checksum(message));
    return packet(kRouter, message);
  }
  void arrives(const Bytes& bytes) {
    RxFrame frame;
    frame.head = bytes;
    peer.stack.on_frames(peer.now, std::span(&frame, 1));
  }
  Error failure() {
    while (!peer.user.failed && peer.fire()) peer.collect();
    return peer.user.failed.value_or(Error{Errc::kAborted, 0, "nothing failed"});
  }
  Peer peer;
};

// SHLD-26: the user need not wait for the connect timeout.
TEST_F(Unreachable, AHardErrorEndsAConnectAtOnce) {
  for (const std::uint8_t code : {IcmpError::kProtocol, IcmpError::kPort, IcmpError::kNetProhibited,
                                  IcmpError::kHostProhibited, IcmpError::kProhibited}) {
    connect();
    const TimePoint begin = peer.now;
    arrives(error(IcmpError::kUnreachable, code, peer.iss));
    ASSERT_TRUE(peer.user.failed) << int{code};
    EXPECT_EQ(peer.user.failed->code, Errc::kNoRoute) << "nothing is known of the peer's process";
    EXPECT_EQ(std::string(peer.user.failed->where).substr(0, 6), "icmp: ");
    EXPECT_EQ(peer.now, begin);
    EXPECT_EQ(peer.stack.connections(), 0U);
    peer.user.failed.reset();
  }
}

// MUST-56, SHLD-25.
TEST_F(Unreachable, ASoftErrorIsTheReasonInTheEnd) {
  connect();
  for (const std::uint8_t code : {IcmpError::kNet, IcmpError::kHost, std::uint8_t{5}})
    arrives(error(IcmpError::kUnreachable, code, peer.iss));
  arrives(error(IcmpError::kTimeExceeded, 1, peer.iss));
  arrives(error(IcmpError::kParameterProblem, 0, peer.iss));
  arrives(error(IcmpError::kUnreachable, IcmpError::kHost, peer.iss));
  ASSERT_FALSE(peer.user.failed);
  const Error error = failure();
  EXPECT_EQ(error.code, Errc::kNoRoute);
  EXPECT_STREQ(error.where, "icmp: host unreachable");
  EXPECT_NEAR(in_ms(peer.now - at(0s)), 20'000, 2);
}

// RFC 5927 section 4: a datagram must not end an established connection.
TEST_F(Unreachable, NoErrorEndsAnEstablishedConnection) {
  peer.open();
  peer.write(100);
  peer.collect();
  arrives(error(IcmpError::kUnreachable, IcmpError::kPort, peer.first()));
  EXPECT_FALSE(peer.user.failed);
  const Error error = failure();
  EXPECT_EQ(error.code, Errc::kNoRoute);
  EXPECT_STREQ(error.where, "icmp: port unreachable");
}

TEST_F(Unreachable, AnErrorBeforeThePeersAnswerIsNoReason) {
  peer.open();
  peer.write(200);
  peer.collect();
  arrives(error(IcmpError::kUnreachable, IcmpError::kHost, peer.first()));
  peer.advance(1ms);
  peer.ack(peer.first() + 100);
  const Error error = failure();
  EXPECT_EQ(error.code, Errc::kTimedOut);
}

// RFC 5927 section 4: it must quote a number in flight.
TEST_F(Unreachable, ErrorsWithOtherNumbersAreIgnored) {
  connect();
  for (const std::uint32_t other : {1U, 0U - 1, 100'000U})
    arrives(error(IcmpError::kUnreachable, IcmpError::kPort, peer.iss + other));
  EXPECT_FALSE(peer.user.failed);
}

TEST_F(Unreachable, AHardErrorEndsAHalfOpenConnection) {
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  peer.iss = peer.collect_one().seq;
  arrives(error(IcmpError::kUnreachable, IcmpError::kPort, peer.iss));
  EXPECT_EQ(peer.stack.next_deadline(), kNever);
}

// One frame after a stranger's, which is answered with a RST.
TEST_F(Unreachable, AnErrorCountsBesideOtherFramesToSend) {
  connect();
  const std::uint16_t port = peer.our_port;
  peer.our_port = 5555;
  peer.send({.flags = wire::kAck, .seq = 10, .ack = 4711});
  peer.our_port = port;
  arrives(error(IcmpError::kUnreachable, IcmpError::kPort, peer.iss));
  EXPECT_TRUE(peer.user.failed);
}

// The IPv4 header has its own checksum, apart from the message's.
TEST_F(Unreachable, DamagedErrorsAreIgnored) {
  connect();
  Bytes bytes = error(IcmpError::kUnreachable, IcmpError::kPort, peer.iss);
  bytes[kIpAt + 8] ^= std::byte{1};  // TTL.
  arrives(bytes);
  bytes[kIpAt + 8] ^= std::byte{1};
  bytes.back() ^= std::byte{1};
  arrives(bytes);
  EXPECT_FALSE(peer.user.failed);
  EXPECT_EQ(peer.stack.counters().rx_bad_checksum, 2U);
  Bytes echo = ping();
  echo[kIpAt + 8] ^= std::byte{1};
  arrives(echo);
  std::vector<TxFrame> out(4);
  EXPECT_EQ(peer.stack.collect(peer.now, out), 0U);
}

TEST_F(Unreachable, AnswersCarryARightHeader) {
  arrives(ping());
  std::vector<TxFrame> out(4);
  ASSERT_EQ(peer.stack.collect(peer.now, out), 1U);
  EXPECT_FALSE(out[0].checksum_offload);
  EXPECT_TRUE(
      wire::ipv4_checksum_good(std::span(out[0].header).subspan(out[0].l2_bytes, out[0].l3_bytes)));
  EXPECT_EQ(wire::internet_checksum({out[0].fragments[0].data, out[0].fragments[0].size_bytes}), 0);
}

}  // namespace
}  // namespace ztcp::tcp::test
