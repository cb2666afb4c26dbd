// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A link with the host's address on one end of a veth, in a network namespace that this test makes
// for itself; its segments go to a link in memory.
#include "transport/link/host_address_link.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <net/if.h>
#include <sched.h>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/netlink.h"
#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/within_seconds.h"
#include "transport/link/memory_link.h"
#include "transport/link/xdp/interface.h"
#include "transport/wire/arp.h"
#include "transport/wire/byte_order.h"

namespace ztcp::link {
namespace {

using test::flatten;
using test::within_seconds;
using testing::HasSubstr;

constexpr Ipv4Address kOwn{0x0a630801};   // 10.99.8.1
constexpr Ipv4Address kPeer{0x0a630802};  // 10.99.8.2
constexpr MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x62}};

bool run(const std::string& command) { return std::system((command + " 2>&1").c_str()) == 0; }

class HostAddressLinkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { namespace_made_ = unshare(CLONE_NEWNET) == 0; }

  void SetUp() override {
    if (!namespace_made_) GTEST_SKIP() << "a network namespace of our own needs root";
    if (!run("ip link add zh0 type veth peer name zh1")) GTEST_SKIP() << "no ip, or no veth";
    ASSERT_TRUE(run("ip link set zh1 up") && run("ip link set zh0 up"));
    ASSERT_TRUE(run("ip address add 10.99.8.1/24 dev zh0"));
    ASSERT_TRUE(run("ip neighbour add 10.99.8.2 lladdr 02:00:00:00:00:62 dev zh0"));
    const auto interface = xdp::find_interface("mlx5", "zh0", 1500);
    ASSERT_TRUE(interface);
    auto tables = xdp::HostTables::open({.interface = *interface,
                                         .own = kOwn,
                                         .lanes = 1,
                                         .mtu_bytes = 1500,
                                         .queues = 0,
                                         .kind = "mlx5"});
    ASSERT_TRUE(tables) << tables.error().where;
    MemoryLinkOptions options;
    options.states[0] = &port_state_;
    auto [near, far] = make_memory_links(options);
    far_ = std::move(far);
    link_ = std::make_unique<HostAddressLink>(std::move(near), std::move(*tables), 0, kOwn);
    ASSERT_TRUE(within_seconds(5, [&] { return link_->is_up(); }));
  }
  void TearDown() override {
    link_.reset();
    if (namespace_made_) run("ip link delete zh0 >/dev/null");
  }

  TxFrame request(Ipv4Address whom) {
    TxFrame out;
    out.l2_bytes = 14;
    out.header_bytes =
        static_cast<std::uint16_t>(14 + wire::emit_arp({.operation = wire::ArpOperation::kRequest,
                                                        .sender_mac = link_->capabilities().mac,
                                                        .sender_ip = kOwn,
                                                        .target_mac = {},
                                                        .target_ip = whom},
                                                       out.header.data() + 14));
    return out;
  }
  // A segment with the source port `mark`.
  static TxFrame segment(std::uint16_t mark) {
    TxFrame out;
    out.l2_bytes = 14;
    out.l3_bytes = 20;
    out.header_bytes = 54;
    std::byte* const p = out.header.data();
    wire::store_be16(p + 12, 0x0800);
    wire::store_u8(p + 14, 0x45);
    wire::store_u8(p + 23, 6);
    wire::store_be16(p + 34, mark);
    return out;
  }

  std::atomic<LinkState> port_state_{LinkState::kUp};
  std::unique_ptr<HostAddressLink> link_;
  std::unique_ptr<Link> far_;  // Receives the segments sent.

 private:
  static inline bool namespace_made_ = false;
};

TEST_F(HostAddressLinkTest, SegmentsReachTheNicAndRequestsTheKernelsTables) {
  const std::array frames{segment(1), request(kPeer), segment(2), segment(3), request(kOwn)};
  ASSERT_EQ(link_->transmit(frames), frames.size());
  for (const unsigned mark : {1U, 2U, 3U}) {
    RxFrame sent;
    ASSERT_EQ(far_->receive({&sent, 1}), 1U);
    const auto bytes = flatten(sent);
    EXPECT_EQ(wire::load_be16(bytes.data() + 34), mark);
    far_->release({&sent, 1});
  }
  RxFrame none;
  EXPECT_EQ(far_->receive({&none, 1}), 0U) << "ARP is the kernel's";

  RxFrame frame;
  ASSERT_TRUE(within_seconds(5, [&] { return link_->receive({&frame, 1}) == 1; }));
  const auto bytes = flatten(frame);
  const auto answer = wire::parse_arp(std::span(bytes).subspan(14));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->operation, wire::ArpOperation::kReply);
  EXPECT_EQ(answer->sender_ip, kPeer);
  EXPECT_EQ(answer->sender_mac, kPeerMac);
  link_->release({&frame, 1});
}

TEST_F(HostAddressLinkTest, AnswersAndSegmentsAreGivenBackEachToItsOwner) {
  std::array<RxFrame, 4> frames;
  // More rounds than there are places for answers.
  for (int round = 0; round < 100; ++round) {
    const TxFrame asked = request(kPeer);
    ASSERT_EQ(link_->transmit({&asked, 1}), 1U);
    const TxFrame arriving = segment(static_cast<std::uint16_t>(round));
    ASSERT_EQ(far_->transmit({&arriving, 1}), 1U);
    std::size_t count = 0;
    ASSERT_TRUE(within_seconds(5, [&] {
      count += link_->receive(std::span(frames).subspan(count));
      return count == 2;
    })) << round;
    link_->release(std::span(frames).first(count));
  }
}

TEST_F(HostAddressLinkTest, AFullNicTakesAPrefixOfTheFrames) {
  std::array<TxFrame, 300> frames;
  frames.fill(segment(1));
  const std::size_t taken = link_->transmit(frames);
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, frames.size());
}

TEST_F(HostAddressLinkTest, TheInterfacesStateIsTheLinks) {
  ASSERT_TRUE(run("ip link set zh0 down"));
  EXPECT_TRUE(within_seconds(5, [&] { return link_->state() == LinkState::kDown; }));
  ASSERT_TRUE(run("ip link set zh0 up"));
  EXPECT_TRUE(within_seconds(5, [&] { return link_->is_up(); }));
  // The port without carrier, too, does not hide the loss of its interface.
  port_state_ = LinkState::kDown;
  EXPECT_EQ(link_->state(), LinkState::kDown);
  const ztcp::test::LogCapture log;
  ASSERT_TRUE(run("ip link delete zh0"));
  EXPECT_TRUE(within_seconds(5, [&] { return link_->state() == LinkState::kGone; }));
  EXPECT_THAT(log.warned(), HasSubstr("mlx5 zh0: the interface was removed"));
  port_state_ = LinkState::kReset;
  EXPECT_EQ(link_->state(), LinkState::kReset) << "the port's own loss";
}

}  // namespace
}  // namespace ztcp::link
