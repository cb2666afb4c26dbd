// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// AF_XDP links whose process attaches the program itself.
#include "transport/link/xdp_link.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <net/if.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/fd.h"
#include "core/netlink.h"
#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "tests/unit/link/within_seconds.h"
#include "tests/unit/link/xdp/xdp_link_fixture.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/bpf.h"
#include "transport/link/xdp/interface.h"
#include "transport/link/xdp/program.h"
#include "transport/wire/arp.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/ethernet.h"

namespace ztcp::link {
namespace {

using test::kListenPort;
using test::kOwn;
using test::kPeer;
using test::kPeerMac;
using test::Outgoing;
using test::run;
using test::segment;
using test::within_seconds;
using test::XdpLinkTest;
using testing::HasSubstr;

struct Mode {
  const char* name;
  bool native;
  std::uint16_t mtu_bytes;
};

class XdpLinkModes : public XdpLinkTest, public testing::WithParamInterface<Mode> {
 protected:
  void open_mode() {
    XdpConfig wanted = config(GetParam().mtu_bytes);
    wanted.may_be_native = GetParam().native;
    open(wanted);
  }
};

TEST_P(XdpLinkModes, EveryByteArrivesBothWays) {
  ASSERT_NO_FATAL_FAILURE(open_mode());
  EXPECT_THAT(link().describe(),
              HasSubstr(GetParam().native ? "xdp zx0, 1 queue, native mode" : "generic mode"));
  const std::size_t largest = GetParam().mtu_bytes + 14U;
  std::uint32_t seed = 1;
  for (const std::size_t size : {std::size_t{60}, std::size_t{1000}, largest - 1, largest}) {
    const auto frame = segment(++seed, size);
    inject(frame);
    EXPECT_EQ(receive_one(), frame) << size;
    Outgoing out(segment(++seed, size), size > 200 ? 3 : 1);
    ASSERT_EQ(link().transmit({&out.frame, 1}), 1U);
    EXPECT_EQ(sent_one(), out.bytes) << size;
  }
}

// More than the rings hold.
TEST_P(XdpLinkModes, ThousandsOfFramesArriveInOrder) {
  ASSERT_NO_FATAL_FAILURE(open_mode());
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const auto frame = segment(i, 80);
    inject(frame);
    ASSERT_EQ(receive_one(), frame) << i;
  }
  for (std::uint32_t i = 0; i < 5000; ++i) {
    Outgoing out(segment(i, 80), 1);
    ASSERT_TRUE(within_seconds(5, [&] { return link().transmit({&out.frame, 1}) == 1; })) << i;
    ASSERT_EQ(sent_one(), out.bytes) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, XdpLinkModes,
                         testing::Values(Mode{"native", true, 1500}, Mode{"generic", false, 1500},
                                         Mode{"native_3500", true, 3500},
                                         Mode{"generic_3500", false, 3500},
                                         Mode{"native_9000", true, 9000}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(XdpLinkTest, ReceivesWithAllFramesKept) {
  ASSERT_NO_FATAL_FAILURE(open(config()));
  std::uint32_t seed = 0;
  test::expect_it_receives_with_all_kept(link(), [&] { inject(segment(++seed, 100)); });
}

TEST_F(XdpLinkTest, AsksTheKernelForANeighbour) {
  ASSERT_TRUE(run("ip neighbour add 10.99.8.2 lladdr 02:00:00:00:00:62 dev zx0"));
  ASSERT_NO_FATAL_FAILURE(open(config()));
  TxFrame request;
  request.l2_bytes = 14;
  request.header_bytes =
      static_cast<std::uint16_t>(14 + wire::emit_arp({.operation = wire::ArpOperation::kRequest,
                                                      .sender_mac = link().capabilities().mac,
                                                      .sender_ip = kOwn,
                                                      .target_mac = {},
                                                      .target_ip = kPeer},
                                                     request.header.data() + 14));
  ASSERT_EQ(link().transmit({&request, 1}), 1U);
  const auto frame = receive_one();
  ASSERT_GE(frame.size(), 42U);
  const auto answer = wire::parse_arp(std::span(frame).subspan(14));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->operation, wire::ArpOperation::kReply);
  EXPECT_EQ(answer->sender_ip, kPeer);
  EXPECT_EQ(answer->sender_mac, kPeerMac);
  EXPECT_EQ(answer->target_mac, link().capabilities().mac);
}

TEST_F(XdpLinkTest, TellsWhatHappensToItsInterface) {
  ASSERT_NO_FATAL_FAILURE(open(config()));
  ASSERT_TRUE(run("ip link set zx0 down"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().state() == LinkState::kDown; }));
  // As by a cable that is unplugged.
  Outgoing out(segment(1, 100), 1);
  EXPECT_EQ(link().transmit({&out.frame, 1}), 1U);
  ASSERT_TRUE(run("ip link set zx0 up"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().is_up(); }));
  const auto frame = segment(2, 100);
  inject(frame);
  EXPECT_EQ(receive_one(), frame);
  ASSERT_TRUE(run("ip link set zx0 down && ip link set zx0 name zx9 && ip link set zx9 up"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().is_up(); })) << "a name does not matter";
  const ztcp::test::LogCapture log;
  ASSERT_TRUE(run("ip link set zx9 mtu 1400"));
  EXPECT_TRUE(within_seconds(5, [&] {
    return log.warned().find("its MTU is 1400 now, mtu_bytes = 1500 in the config") !=
           std::string::npos;
  })) << log.warned();
  ASSERT_TRUE(run("ip link delete zx1"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().state() == LinkState::kGone; }));
}

TEST_F(XdpLinkTest, LeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(open(config()));
  EXPECT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
  links_.clear();
  EXPECT_FALSE(run("ip link show zx0 | grep -q prog/xdp"));
}

TEST_F(XdpLinkTest, AnotherProgramIsLeftAloneAndNamed) {
  const auto map = xdp::make_socket_map(1);
  ASSERT_TRUE(map);
  const auto other = xdp::load_program(xdp::assemble({kOwn, 1, 1, 1}, map->get()));
  ASSERT_TRUE(other);
  const auto attached = xdp::attach_program(*other, if_nametoindex("zx0"), 0);
  ASSERT_TRUE(attached);
  EXPECT_THAT(refusal(config()), HasSubstr("the XDP program ztcp_xdp (id "));
  EXPECT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
}

TEST_F(XdpLinkTest, RefusesInterfacesByName) {
  XdpConfig wanted = config();
  wanted.interface = "zx7";
  EXPECT_THAT(refusal(wanted), HasSubstr("xdp zx7: no such interface"));
  ASSERT_TRUE(run("ip link add zxbr type bridge && ip link set zx0 master zxbr"));
  EXPECT_THAT(refusal(config()), HasSubstr("belongs to the bridge zxbr"));
  wanted.interface = "zxbr";
  EXPECT_THAT(refusal(wanted), HasSubstr("xdp zxbr: it is a bridge"));
  ASSERT_TRUE(run("ip link set zx0 nomaster && ip link delete zxbr"));
  if (run("ip link add link zx0 name zxvlan type vlan id 5 >/dev/null")) {
    wanted.interface = "zxvlan";
    EXPECT_THAT(refusal(wanted), HasSubstr("xdp zxvlan: it is a vlan"));
  }
  wanted = config(9000);
  EXPECT_THAT(refusal(wanted), HasSubstr("its MTU is 1500, mtu_bytes = 9000 in the config"));
  wanted = config();
  wanted.address = kPeer;
  EXPECT_THAT(refusal(wanted), HasSubstr("is it an address of this interface?"));
}

TEST_F(XdpLinkTest, MissingRightsAreNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has rights to give up";
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string said = refusal(config());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(said, HasSubstr("needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW"));
}

TEST_F(XdpLinkTest, DroppedFramesAreCounted) {
  XdpConfig wanted = config();
  wanted.rx_frames = 512;
  ASSERT_NO_FATAL_FAILURE(open(wanted));
  link().transmit_room(TimePoint{} + std::chrono::hours(1));
  EXPECT_EQ(link().counters().rx_dropped_no_memory, 0U);
  // More than there are chunks, and the link does not look at them.
  for (std::uint32_t i = 0; i < 600; ++i) inject(segment(i, 100));
  TimePoint now = TimePoint{} + std::chrono::hours(2);
  EXPECT_TRUE(within_seconds(5, [&] {
    link().transmit_room(now += std::chrono::seconds(1));
    return link().counters().rx_dropped_no_memory + link().counters().nic.rx_missed >= 88;
  }));
  EXPECT_GT(link().counters().nic.rx_no_buffers + link().counters().nic.rx_missed, 0U);
}

}  // namespace
}  // namespace ztcp::link
