// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// XDP programs of a real interface, in namespaces that end with the test.
#include <cerrno>
#include <cstring>
#include <sys/mount.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/port_set.h"
#include "config/machine/readings.h"
#include "config/nic_interface.h"
#include "core/netlink.h"
#include "tests/unit/tools/ztcp_setup/live/live_network.h"
#include "tools/ztcp_setup/resources/mount.h"
#include "tools/ztcp_setup/resources/reserved_ports.h"
#include "tools/ztcp_setup/resources/xdp_program.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/interface.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

class LiveXdp : public LiveNetwork {
 protected:
  void SetUp() override {
    LiveNetwork::SetUp();
    if (IsSkipped()) return;
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/run", "tmpfs", 0, "mode=755") != 0)
      GTEST_SKIP() << "no right to mount: " << std::strerror(errno);
    ip("link set nic0 up");
    ip("address add 10.77.1.5/24 dev nic0");
    auto before = mount_.before(host_);
    ASSERT_TRUE(before);
    if (const Done mounted = mount_.apply(host_, *before); !mounted)
      GTEST_SKIP() << mounted.error().what;
  }

  const resource::Mount mount_{config::kBpfFolder, "bpf", "mode=755"};
  const resource::XdpProgram program_{"nic0", "10.77.1.5", 7471, 61000, 65535, "", ""};
};

TEST_F(LiveXdp, AProgramIsAttachedAndTakenOff) {
  EXPECT_TRUE(mount_.holds(host_));
  EXPECT_FALSE(program_.holds(host_));
  config::Problems problems;
  program_.check(host_, {}, problems);
  EXPECT_THAT(problems, IsEmpty()) << words(problems);
  auto before = program_.before(host_);
  ASSERT_TRUE(before);
  const Done done = program_.apply(host_, *before);
  if (!done && ::geteuid() == 0) GTEST_SKIP() << "no BPF here: " << done.error().what;
  ASSERT_TRUE(done);
  EXPECT_TRUE(program_.holds(host_));
  EXPECT_THAT(shown("link show nic0"), HasSubstr("prog/xdp"));
  EXPECT_THAT(host_.xdp_mode("nic0", 1500), MatchesRegex("[0-9]+ queues?, native mode, .*"));
  program_.check(host_, {}, problems);
  EXPECT_THAT(problems, IsEmpty()) << "its own program is no obstacle";

  // Another range of ports takes its place.
  resource::XdpProgram other = program_;
  other.last_port = 65000;
  EXPECT_FALSE(other.holds(host_));
  auto again = other.before(host_);
  ASSERT_TRUE(again);
  ASSERT_TRUE(other.apply(host_, *again));
  EXPECT_TRUE(other.holds(host_));
  EXPECT_FALSE(program_.holds(host_));

  for (int time = 0; time < 2; ++time) {
    const Reverted reverted = program_.revert(host_, *before);
    EXPECT_THAT(reverted.faults, IsEmpty()) << words(reverted.faults);
    EXPECT_THAT(shown("link show nic0"), Not(HasSubstr("prog/xdp")));
  }
  EXPECT_THAT(mount_.revert(host_, {}).faults, IsEmpty());
}

TEST_F(LiveXdp, TheProgramOfARunningProcessIsKnown) {
  EXPECT_FALSE(host_.xdp_is_in_use("nic0"));
  auto kernel = netlink::Session::open();
  ASSERT_TRUE(kernel);
  const auto facts = link::xdp::read_interface(*kernel, std::string("nic0"));
  ASSERT_TRUE(facts && *facts);
  {
    const auto attached = link::xdp::attach(**facts, {Ipv4Address{0x0a4d0105}, 7471, 61000, 65535},
                                            /*may_be_native=*/true);
    if (!attached) GTEST_SKIP() << "no BPF here: " << std::strerror(attached.error().sys_errno);
    EXPECT_TRUE(host_.xdp_is_in_use("nic0"));
  }
  EXPECT_FALSE(host_.xdp_is_in_use("nic0"));
}

TEST_F(LiveXdp, PortsAreReservedAndGivenBack) {
  const resource::ReservedPorts ports{"7471,61000-65535"};
  EXPECT_FALSE(ports.holds(host_));
  auto before = ports.before(host_);
  ASSERT_TRUE(before);
  const Done done = ports.apply(host_, *before);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_TRUE(ports.holds(host_));
  EXPECT_EQ(config::read_line(host_, config::kReservedPorts), ports.ports);
  EXPECT_THAT(ports.revert(host_, *before).faults, IsEmpty());
  EXPECT_EQ(config::read_line(host_, config::kReservedPorts).value_or(""), "");
}

TEST_F(LiveXdp, ObstaclesAreNamed) {
  EXPECT_THAT(host_.xdp_obstacle("nic7"), HasSubstr("is not an interface"));
  ip("link add br0 type bridge");
  EXPECT_THAT(host_.xdp_obstacle("br0"), HasSubstr("is a bridge"));
  ip("link set nic0 master br0");
  EXPECT_THAT(host_.xdp_obstacle("nic0"), HasSubstr("belongs to the bridge br0"));
  ip("link set nic0 nomaster");
  auto session = netlink::Session::open();
  const auto facts = link::xdp::read_interface(*session, std::string("nic0"));
  ASSERT_TRUE(facts && *facts);
  const auto attached = link::xdp::attach(**facts, {Ipv4Address{1}, 1, 2, 3}, true);
  if (!attached) GTEST_SKIP() << "no BPF here";
  EXPECT_THAT(host_.xdp_obstacle("nic0"), HasSubstr("has the XDP program ztcp_xdp (id "));
}

}  // namespace
}  // namespace ztcp::setup
