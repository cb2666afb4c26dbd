// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Permissions for other users: a good host, then one fault at a time.
#include <unistd.h>

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

constexpr const char* kLimits = "/etc/security/limits.d/ztcp.conf";

struct RightsScene {
  FakeHost host{
      "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=vfio-pci "
      "group=7\n"};
  config::Fabric fabric;

  RightsScene() {
    fabric.path = "/opt/ztcp/ztcp.conf";
    fabric.host.host_class = config::HostClass::kIommu;
    fabric.host.group = "ztcp";
    config::Nic& nic = fabric.nics.emplace_back();
    nic.driver = config::NicDriver::kPci;
    nic.name = "ztcp0";
    nic.pci = "0000:00:05.0";
    host.state.nodes["/dev/vfio/7"] = {FileKind::kOther, {0660, 0, host.groups.at("ztcp")}, ""};
    host.add_file(kLimits, "@ztcp - memlock unlimited\n");
    host.add_folder("/etc/security/limits.d");
    host.add_folder("/opt");
    host.add_folder("/opt/ztcp");
    host.add_file("/opt/ztcp/ztcp.conf", "schema = 1\n");
  }
  Ownership& owner(const std::string& path) { return host.state.nodes.at(path).ownership; }
  std::vector<std::string> bad() {
    std::vector<std::string> found;
    for (const config::Check& check : check_rights(fabric, host))
      if (check.severity != Severity::kGood) {
        found.push_back(check.name + " " + check.problem.where + " " + check.problem.what);
        EXPECT_FALSE(check.problem.mend.empty());
      }
    return found;
  }
};

TEST(Rights, RdmaDevicesNeedLockedMemory) {
  RightsScene scene;
  scene.fabric.host.host_class = config::HostClass::kUnprivileged;
  scene.fabric.nics[0].driver = config::NicDriver::kVerbs;
  scene.fabric.nics[0].device = "mlx5_0";
  EXPECT_THAT(scene.bad(), IsEmpty());
  scene.host.add_file(kLimits, "@ztcp - memlock 4194303\n");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("wanted unlimited, or 4194304 KiB: all that NCCL "
                                                 "registers with RDMA devices")));
  scene.host.add_file(kLimits, "@ztcp - memlock 4194304\n");
  EXPECT_THAT(scene.bad(), IsEmpty()) << "as in a process";
  scene.fabric.host.group.clear();
  EXPECT_THAT(scene.bad(), IsEmpty()) << "nobody was named";
}

TEST(Rights, AGoodHostHasNoFaults) {
  RightsScene scene;
  EXPECT_THAT(scene.bad(), IsEmpty());
  scene.fabric.host.group.clear();
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, AConfigOfAnotherUserIsAFault) {
  RightsScene scene;
  scene.owner("/opt/ztcp").user = scene.host.users.at("alice");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("config /opt/ztcp belongs to alice, wanted "
                                                 "root")));
}

TEST(Rights, AWorldWritableConfigIsAFault) {
  RightsScene scene;
  scene.owner("/opt/ztcp/ztcp.conf").mode = 0666;
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("config /opt/ztcp/ztcp.conf is writable by "
                                                 "everybody (mode 0666)")));
}

TEST(Rights, AWritableFolderAboveTheConfigIsAFault) {
  RightsScene scene;
  scene.owner("/opt").mode = 0777;
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("config /opt is writable by everybody")));
  scene.owner("/opt").mode = 01777;  // As in /tmp: only owners remove their files.
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, AWorldReadableSecretIsAFault) {
  RightsScene scene;
  scene.fabric.messages.cluster_key = std::string(64, 'a');
  EXPECT_THAT(scene.bad(),
              ElementsAre(HasSubstr("holds a cluster_key and is readable by everybody")));
  scene.owner("/opt/ztcp/ztcp.conf").mode = 0640;
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, AGroupWithoutAccessToTheNicIsAFault) {
  RightsScene scene;
  scene.owner("/dev/vfio/7").group = 0;
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("access ztcp0 /dev/vfio/7 is 0660 root:root, "
                                                 "wanted access for group ztcp")));
}

TEST(Rights, AMissingAccountIsAFault) {
  RightsScene scene;
  scene.fabric.host.host_class = config::HostClass::kNoIommu;
  scene.host.state.nodes.erase("/dev/vfio/7");
  scene.fabric.host.user = "carol";
  scene.fabric.host.group = "gone";
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("no user carol"), HasSubstr("no group gone")));
}

TEST(Rights, TooLittleLockedMemoryForSessionsIsAFault) {
  RightsScene scene;
  scene.host.add_file(kLimits, "@ztcp - memlock 5242880\n");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("memlock sessions of group ztcp max locked memory "
                                                 "is 5242880 KiB")));
  scene.host.state.nodes.erase(kLimits);
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("is not set in /etc/security/limits.*")));
}

TEST(Rights, AServiceWithADefaultMemoryLimitIsAWarning) {
  RightsScene scene;
  scene.host.add_file("/usr/lib/systemd/system/docker.service", "[Service]\n");
  scene.host.add_file("/usr/lib/systemd/system/slurmd.service",
                      "[Service]\nLimitMEMLOCK=infinity\n");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("memlock docker.service")));
  scene.host.add_file("/etc/systemd/system/docker.service.d/50-ztcp.conf",
                      "LimitMEMLOCK=infinity\n");
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, ConfigsOfKernelSocketsAndRdmaDevicesAreCheckedToo) {
  for (const auto driver : {config::NicDriver::kSocket, config::NicDriver::kVerbs}) {
    RightsScene scene;
    scene.fabric.host = {};
    scene.fabric.nics[0].driver = driver;
    scene.fabric.nics[0].pci.clear();
    EXPECT_THAT(scene.bad(), IsEmpty());
    scene.fabric.messages.cluster_key = std::string(64, 'a');
    EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("is readable by everybody (mode 0644)")));
    scene.owner("/opt/ztcp/ztcp.conf").mode = 0666;
    EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("is writable by everybody (mode 0666)"),
                                         HasSubstr("is readable by everybody")));
  }
}

TEST(Rights, AConfigWithoutNicsIsForKernelSockets) {
  RightsScene scene;
  scene.fabric.host = {};
  scene.fabric.nics.clear();
  scene.fabric.messages.cluster_key = std::string(64, 'a');
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("is readable by everybody (mode 0644)")));
}

TEST(Rights, OverKernelSocketsTheConfigMayBeTheUsersOwn) {
  RightsScene scene;
  scene.fabric.host = {};
  scene.fabric.nics[0].driver = config::NicDriver::kSocket;
  const std::string me = scene.host.user_name(::geteuid());
  scene.owner("/opt/ztcp").user = scene.owner("/opt/ztcp/ztcp.conf").user = ::geteuid();
  EXPECT_THAT(scene.bad(), IsEmpty()) << me;
  scene.owner("/opt/ztcp/ztcp.conf").user = scene.host.users.at("alice");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("belongs to alice")));
}

TEST(Rights, WithKernelSocketsAMissingAccountIsAWarning) {
  RightsScene scene;
  scene.fabric.host = {};
  scene.fabric.nics[0].driver = config::NicDriver::kSocket;
  scene.fabric.host.user = "ghost";
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("no user ghost on this machine")));
  for (const config::Check& check : check_rights(scene.fabric, scene.host))
    EXPECT_NE(check.severity, Severity::kFault) << check.problem.what;
}

TEST(Rights, FabricsOfSoftwareNicsAreNotChecked) {
  RightsScene scene;
  scene.owner("/opt/ztcp/ztcp.conf").mode = 0666;
  scene.fabric.nics[0].driver = config::NicDriver::kMemif;
  EXPECT_THAT(scene.bad(), IsEmpty());
}

struct LimitCase {
  const char* name;
  const char* text;
  std::optional<std::uint64_t> kib;
};
class SessionLimit : public testing::TestWithParam<LimitCase> {};

TEST_P(SessionLimit, FollowsTheLineInEffect) {
  FakeHost host;
  host.add_file("/etc/security/limits.conf", GetParam().text);
  EXPECT_EQ(session_memlock_kib(host, "alice", {"ztcp"}), GetParam().kib);
}

INSTANTIATE_TEST_SUITE_P(
    Line, SessionLimit,
    testing::Values(
        LimitCase{"none", "# * - memlock 5", std::nullopt},
        LimitCase{"of_somebody_else", "bob - memlock 5", std::nullopt},
        LimitCase{"of_something_else", "* - nofile 5", std::nullopt},
        LimitCase{"of_all", "* soft memlock 64", 64},
        LimitCase{"of_a_group", "* - memlock 64\n@ztcp - memlock unlimited", kUnlimitedKib},
        LimitCase{"of_the_user", "alice - memlock 7\n@ztcp - memlock unlimited", 7},
        LimitCase{"the_last_of_equals", "* - memlock 64\n* - memlock 65", 65},
        LimitCase{"never_above_the_hard_one", "* soft memlock unlimited\n* hard memlock 64", 64},
        LimitCase{"minus_one", "* - memlock -1", kUnlimitedKib},
        LimitCase{"nonsense", "* - memlock lots", std::nullopt}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace ztcp::setup
