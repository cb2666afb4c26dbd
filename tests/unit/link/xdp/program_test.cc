// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The XDP program in the kernel, which runs it on frames that this test makes (BPF_PROG_TEST_RUN):
// with a socket in the map a frame for ztcp is redirected, and any other frame passes.
#include "transport/link/xdp/program.h"

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <sys/socket.h>
#include <vector>

#include <gtest/gtest.h>

#include "core/fd.h"
#include "transport/link/xdp/bpf.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/ipv6.h"

namespace ztcp::link::xdp {
namespace {

constexpr std::uint16_t kListenPort = 7471;
constexpr std::uint16_t kFirstPort = 61000;
constexpr std::uint16_t kLastPort = 61003;
constexpr Ipv4Address kOwnV4{0xc0a8f001};  // Its first byte is above 127.
constexpr IpAddress kOwnV6{0xfd66'8000'0000'00ffULL, 0xff00'0000'0000'0001ULL};
constexpr std::size_t kEthernet = 14;

// A frame to the host's own address, as short as Ethernet allows it.
std::vector<std::byte> frame_v4(std::uint16_t to_port) {
  std::vector<std::byte> frame(64);
  std::byte* const p = frame.data();
  wire::store_be16(p + 12, 0x0800);
  wire::store_u8(p + kEthernet, 0x45);
  wire::store_be16(p + kEthernet + 2, 50);
  wire::store_be16(p + kEthernet + 6, 0x4000);  // Don't fragment.
  wire::store_u8(p + kEthernet + 9, 6);
  wire::store_be32(p + kEthernet + 12, 0x0a000002);
  wire::store_be32(p + kEthernet + 16, kOwnV4.value);
  wire::store_be16(p + kEthernet + 22, to_port);
  return frame;
}

std::vector<std::byte> frame_v6(std::uint16_t to_port) {
  std::vector<std::byte> frame(80);
  std::byte* const p = frame.data();
  wire::store_be16(p + 12, 0x86dd);
  wire::store_u8(p + kEthernet, 0x60);
  wire::store_u8(p + kEthernet + 6, 6);
  wire::store_ipv6_address(p + kEthernet + 24, kOwnV6);
  wire::store_be16(p + kEthernet + 42, to_port);
  return frame;
}

class XdpProgram : public testing::Test {
 protected:
  void load(const IpAddress& own, bool with_socket = true, std::uint16_t processes = 1) {
    auto map = make_socket_map(1);
    if (!map) {
      ASSERT_TRUE(map.error().sys_errno == EPERM || map.error().sys_errno == EINVAL ||
                  map.error().sys_errno == ENOSYS)
          << map.error().sys_errno;
      GTEST_SKIP() << "no BPF here: " << std::strerror(map.error().sys_errno);
    }
    map_ = std::move(*map);
    if (with_socket) {
      socket_ = Fd(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
      if (!socket_) GTEST_SKIP() << "no AF_XDP here: " << std::strerror(errno);
      ASSERT_TRUE(put_socket(map_, 0, socket_));
    }
    auto program =
        load_program(assemble({own, kListenPort, kFirstPort, kLastPort, processes}, map_.get()));
    ASSERT_TRUE(program) << "the verifier refuses it: " << std::strerror(program.error().sys_errno);
    program_ = std::move(*program);
  }

  std::uint32_t run(const std::vector<std::byte>& frame) {
    const auto result = run_program(program_, frame);
    EXPECT_TRUE(result) << std::strerror(result.error().sys_errno);
    return result.value_or(XDP_ABORTED);
  }
  void expect_passed(std::vector<std::byte> frame, const char* what) {
    EXPECT_EQ(run(frame), std::uint32_t{XDP_PASS}) << what;
  }

 private:
  Fd map_;
  Fd socket_;
  Fd program_;
};

TEST_F(XdpProgram, SegmentsToOurPortsAreRedirected) {
  ASSERT_NO_FATAL_FAILURE(load(kOwnV4));
  if (IsSkipped()) return;
  for (const std::uint16_t port : {kListenPort, kFirstPort, std::uint16_t{61001}, kLastPort})
    EXPECT_EQ(run(frame_v4(port)), std::uint32_t{XDP_REDIRECT}) << port;
}

TEST_F(XdpProgram, SegmentsToOtherPortsPass) {
  ASSERT_NO_FATAL_FAILURE(load(kOwnV4));
  if (IsSkipped()) return;
  for (const unsigned port :
       {0U, 22U, kListenPort - 1U, kListenPort + 1U, kFirstPort - 1U, kLastPort + 1U, 65535U})
    expect_passed(frame_v4(static_cast<std::uint16_t>(port)), std::to_string(port).c_str());
}

TEST_F(XdpProgram, EachProcessHasAListeningPort) {
  ASSERT_NO_FATAL_FAILURE(load(kOwnV4, /*with_socket=*/true, /*processes=*/3));
  if (IsSkipped()) return;
  for (const unsigned more : {0U, 1U, 2U})
    EXPECT_EQ(run(frame_v4(static_cast<std::uint16_t>(kListenPort + more))),
              std::uint32_t{XDP_REDIRECT});
  expect_passed(frame_v4(kListenPort + 3), "one more");
  expect_passed(frame_v4(kListenPort - 1), "one less");
}

TEST_F(XdpProgram, OtherFramesPass) {
  ASSERT_NO_FATAL_FAILURE(load(kOwnV4));
  if (IsSkipped()) return;
  const auto changed = [](auto&& change) {
    auto frame = frame_v4(kListenPort);
    change(frame.data());
    return frame;
  };
  expect_passed(changed([](std::byte* p) { wire::store_be16(p + 12, 0x0806); }), "ARP");
  expect_passed(changed([](std::byte* p) { wire::store_be16(p + 12, 0x8100); }), "VLAN");
  expect_passed(changed([](std::byte* p) { wire::store_u8(p + 14, 0x46); }), "options");
  expect_passed(changed([](std::byte* p) { wire::store_be16(p + 20, 0x2000); }), "first fragment");
  expect_passed(changed([](std::byte* p) { wire::store_be16(p + 20, 0x0001); }), "later fragment");
  expect_passed(changed([](std::byte* p) { wire::store_u8(p + 23, 17); }), "UDP");
  expect_passed(changed([](std::byte* p) { wire::store_be32(p + 30, kOwnV4.value + 1); }),
                "another address");
  expect_passed(changed([](std::byte* p) { wire::store_be32(p + 30, kOwnV4.value ^ 1U << 31); }),
                "another address");
  expect_passed(frame_v6(kListenPort), "IPv6");
}

// An empty packet after the Ethernet header: no byte of it may be read.
TEST_F(XdpProgram, ShortFramesPass) {
  ASSERT_NO_FATAL_FAILURE(load(kOwnV4));
  if (IsSkipped()) return;
  auto frame = frame_v4(kListenPort);
  for (const std::size_t size : {std::size_t{15}, std::size_t{34}, std::size_t{37}}) {
    frame.resize(size);
    expect_passed(frame, std::to_string(size).c_str());
  }
  frame = frame_v4(kListenPort);
  frame.resize(38);
  EXPECT_EQ(run(frame), std::uint32_t{XDP_REDIRECT}) << "the ports are the last bytes it needs";
}

TEST_F(XdpProgram, Ipv6IsSortedLikeIpv4) {
  ASSERT_NO_FATAL_FAILURE(load(kOwnV6));
  if (IsSkipped()) return;
  EXPECT_EQ(run(frame_v6(kListenPort)), std::uint32_t{XDP_REDIRECT});
  EXPECT_EQ(run(frame_v6(kLastPort)), std::uint32_t{XDP_REDIRECT});
  expect_passed(frame_v6(22), "port 22");
  for (const std::size_t byte : {0U, 4U, 8U, 15U}) {
    auto frame = frame_v6(kListenPort);
    frame[kEthernet + 24 + byte] ^= std::byte{1};
    expect_passed(frame, "another address");
  }
  auto frame = frame_v6(kListenPort);
  wire::store_u8(frame.data() + kEthernet + 6, 0);
  expect_passed(frame, "an extension header");
  expect_passed(frame_v4(kListenPort), "IPv4");
}

TEST_F(XdpProgram, QueueWithoutASocketPassesEverything) {
  ASSERT_NO_FATAL_FAILURE(load(kOwnV4, /*with_socket=*/false));
  if (IsSkipped()) return;
  expect_passed(frame_v4(kListenPort), "our port");
}

}  // namespace
}  // namespace ztcp::link::xdp
