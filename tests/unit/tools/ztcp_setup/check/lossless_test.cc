// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

using config::Severity;
using test::FakeHost;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kAsk = "dcb pfc show dev eth1";
constexpr const char* kOn =
    "pfc-cap 8 macsec-bypass off delay 0 \n"
    "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off \n"
    "requests 0:0 1:0 2:0 3:17 4:0 5:0 6:0 7:0 \n";

const std::string kTree =
    "pci path=pci0000:16/0000:16:01.0 id=15b3:1021 class=020000 numa=0 driver=mlx5_core\n"
    "net path=pci0000:16/0000:16:01.0 name=eth1 mac=0a:00:00:00:00:05 mtu=9000 speed=100000\n"
    "link path=sys/class/infiniband/mlx5_0/device to=../../../devices/pci0000:16/0000:16:01.0\n"
    "file path=sys/class/infiniband/mlx5_0/ports/1/state text=4: ACTIVE\\n\n"
    "file path=sys/class/infiniband/mlx5_0/ports/1/link_layer text=Ethernet\\n\n";

config::Fabric over(const char* device) {
  config::Fabric fabric;
  config::Nic nic;
  nic.name = "ztcp0";
  nic.driver = config::NicDriver::kVerbs;
  nic.device = device;
  fabric.nics = {nic};
  return fabric;
}

config::Check only(const std::vector<config::Check>& checks) {
  EXPECT_EQ(checks.size(), 1U);
  return checks.empty() ? config::Check{} : checks[0];
}

TEST(Lossless, PrioritiesAreReadFromDcb) {
  EXPECT_THAT(*lossless_priorities(kOn), ElementsAre(3));
  EXPECT_THAT(*lossless_priorities("prio-pfc 0:off 1:off"), IsEmpty());
  EXPECT_FALSE(lossless_priorities("requests 3:on"));
}

TEST(Lossless, PfcOnThisHostIsGood) {
  FakeHost host(kTree);
  host.programs.insert("dcb");
  host.answers[kAsk] = kOn;
  const config::Check said = only(check_lossless(over("mlx5_0"), host));
  EXPECT_EQ(said.severity, Severity::kGood);
  EXPECT_EQ(
      said.problem.what,
      "eth1: PFC is on for priority 3, ECN is unknown; a host can't see the switches' settings");
}

TEST(Lossless, OffIsAWarningWithTheCommand) {
  FakeHost host(kTree);
  host.programs.insert("dcb");
  host.answers[kAsk] = "prio-pfc 0:off 1:off 2:off 3:off 4:off 5:off 6:off 7:off";
  const config::Check said = only(check_lossless(over("mlx5_0"), host));
  EXPECT_EQ(said.severity, Severity::kWarning);
  EXPECT_THAT(said.problem.what, HasSubstr("PFC is off, ECN is unknown"));
  EXPECT_THAT(said.problem.mend, HasSubstr("sudo dcb pfc set dev eth1 prio-pfc 3:on"));
}

TEST(Lossless, EcnAloneIsEnough) {
  FakeHost host(kTree +
                "file path=sys/class/net/eth1/ecn/roce_np/enable/0 text=0\\n\n"
                "file path=sys/class/net/eth1/ecn/roce_np/enable/3 text=1\\n\n"
                "file path=sys/class/net/eth1/ecn/roce_rp/enable/3 text=1\\n\n");
  const config::Check said = only(check_lossless(over("mlx5_0"), host));
  EXPECT_EQ(said.severity, Severity::kGood);
  EXPECT_THAT(said.problem.what, HasSubstr("PFC is unknown (there is no dcb (of iproute2)), ECN is "
                                           "on for priority 3"));
}

TEST(Lossless, UnreportedSettingsAreUnknown) {
  FakeHost host(kTree);
  host.programs.insert("dcb");
  const config::Check said = only(check_lossless(over("mlx5_0"), host));
  EXPECT_EQ(said.severity, Severity::kWarning);
  EXPECT_THAT(said.problem.what, HasSubstr("PFC is unknown (dcb"));
  EXPECT_THAT(said.problem.mend, HasSubstr("mlnx_qos -i eth1"));
  host.answers[kAsk] = "Error: Operation not supported\nUsage: dcb ...\n";
  EXPECT_THAT(only(check_lossless(over("mlx5_0"), host)).problem.what,
              HasSubstr("PFC is unknown (dcb: Error: Operation not supported), "));
}

TEST(Lossless, SoftwareAndInfiniBandAreSkipped) {
  FakeHost soft("file path=sys/class/infiniband/rxe0/parent text=eth1\\n\n");
  EXPECT_THAT(check_lossless(over("rxe0"), soft), IsEmpty());
  FakeHost infiniband(
      kTree + "file path=sys/class/infiniband/mlx5_0/ports/1/link_layer text=InfiniBand\\n\n");
  EXPECT_THAT(check_lossless(over("mlx5_0"), infiniband), IsEmpty());
}

}  // namespace
}  // namespace ztcp::setup
