// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What others may do: a host where all is well, then one thing wrong at a time. The tree's owner
// stands for root there, and no other owner can be made without being root: a user and a group that
// are named otherwise than the owner have no access.
#include "tools/ztcp_setup/check/rights.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"
#include "tests/unit/tools/setup/tree_host.h"
#include "tools/ztcp_setup/check/memlock.h"

namespace ztcp::setup {
namespace {

using config::Severity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Scene {
  ztcp::test::Tree tree{
      "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=vfio-pci group=7\n"
      "file path=dev/vfio/7 text=\n"
      "file path=etc/passwd text=alice:x:1000:1000::/home/alice:/bin/sh\n"
      "file path=etc/group text=root:x:0:\\nztcp:x:990:bob,alice\\nalice:x:1000:\n"
      "file path=etc/security/limits.d/ztcp.conf text=@ztcp - memlock unlimited\n"
      "file path=opt/ztcp/ztcp.conf text=schema = 1\n"};
  config::Fabric fabric;

  Scene() {
    fabric.path = "/opt/ztcp/ztcp.conf";
    fabric.host.host_class = config::HostClass::kIommu;
    config::Nic& nic = fabric.nics.emplace_back();
    nic.driver = config::NicDriver::kPci;
    nic.name = "ztcp0";
    nic.pci = "0000:00:05.0";
    mode("dev/vfio/7", 0660);
    mode("opt", 0755);
    mode("opt/ztcp", 0755);
    mode("opt/ztcp/ztcp.conf", 0644);
  }
  void mode(const std::string& path, mode_t mode) const {
    ASSERT_EQ(::chmod(tree.path(path).c_str(), mode), 0);
  }
  std::vector<std::string> bad() const {
    std::vector<std::string> found;
    test::TreeHost host(tree);
    for (const config::Check& check : check_rights(fabric, host))
      if (check.severity != Severity::kGood) {
        found.push_back(check.name + " " + check.problem.where + " " + check.problem.what);
        EXPECT_FALSE(check.problem.mend.empty());
      }
    return found;
  }
};

TEST(Rights, AllIsWell) {
  Scene scene;
  EXPECT_THAT(scene.bad(), IsEmpty());
  scene.fabric.host.group = "root";
  scene.tree.add("file path=etc/security/limits.d/ztcp.conf text=@root - memlock unlimited");
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, AConfigThatAnybodyMayWrite) {
  const Scene scene;
  scene.mode("opt/ztcp/ztcp.conf", 0666);
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("config /opt/ztcp/ztcp.conf may be written by "
                                                 "anybody (mode 0666)")));
}

TEST(Rights, AFolderThroughWhichTheConfigCanBeReplaced) {
  const Scene scene;
  scene.mode("opt", 0777);
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("config /opt may be written by anybody")));
  scene.mode("opt", 01777);  // As in /tmp: only owners remove what is theirs.
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, ASecretThatAnybodyMayRead) {
  Scene scene;
  scene.fabric.messages.cluster_key = std::string(64, 'a');
  EXPECT_THAT(scene.bad(),
              ElementsAre(HasSubstr("holds a cluster_key and may be read by anybody")));
  scene.mode("opt/ztcp/ztcp.conf", 0640);
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, AGroupThatMayNotOpenTheNic) {
  Scene scene;
  scene.fabric.host.group = "ztcp";
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("access ztcp0 /dev/vfio/7 is 0660 root:root, "
                                                 "wanted access for group ztcp")));
}

TEST(Rights, AnAccountThatIsGone) {
  Scene scene;
  scene.fabric.host.host_class = config::HostClass::kNoIommu;
  scene.tree.remove("dev/vfio/7");
  scene.fabric.host.user = "carol";
  scene.fabric.host.group = "gone";
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("no user carol"), HasSubstr("no group gone")));
}

TEST(Rights, SessionsWithTooLittleLockedMemory) {
  Scene scene;
  scene.fabric.host.group = "root";
  scene.tree.add("file path=etc/security/limits.d/ztcp.conf text=@root - memlock 5242880");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("memlock sessions of group root max locked memory "
                                                 "is 5242880 KiB")));
  scene.tree.remove("etc/security/limits.d/ztcp.conf");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("is not set in /etc/security/limits.*")));
}

TEST(Rights, AServiceThatKeepsItsLimitFromItsJobs) {
  Scene scene;
  scene.fabric.host.group = "root";
  scene.tree.add(
      "file path=etc/security/limits.d/ztcp.conf text=@root - memlock unlimited\n"
      "file path=usr/lib/systemd/system/docker.service text=[Service]\n"
      "file path=usr/lib/systemd/system/slurmd.service text=[Service]\\nLimitMEMLOCK=infinity\n");
  EXPECT_THAT(scene.bad(), ElementsAre(HasSubstr("memlock docker.service")));
  scene.tree.add(
      "file path=etc/systemd/system/docker.service.d/50-ztcp.conf text=LimitMEMLOCK=infinity");
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Rights, SoftwareNicsAreTheirUsersOwnAffair) {
  Scene scene;
  scene.mode("opt/ztcp/ztcp.conf", 0666);
  scene.fabric.nics[0].driver = config::NicDriver::kMemif;
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(Accounts, OfATreeComeFromItsFiles) {
  const Scene scene;
  test::TreeHost host(scene.tree);
  EXPECT_EQ(host.user_id("alice"), 1000U);
  EXPECT_EQ(host.user_id("ali"), std::nullopt);
  EXPECT_EQ(host.group_id("ztcp"), 990U);
  EXPECT_EQ(host.user_name(1000), "alice");
  EXPECT_EQ(host.user_name(7), "7");
  EXPECT_EQ(host.group_name(0), "root");
  EXPECT_THAT(host.groups_of("alice"), ElementsAre("alice", "ztcp"));
}

struct LimitCase {
  const char* name;
  const char* text;
  std::optional<std::uint64_t> kib;
};
class SessionLimit : public testing::TestWithParam<LimitCase> {};

TEST_P(SessionLimit, FollowsTheLineThatHolds) {
  const ztcp::test::Tree tree(std::string("file path=etc/security/limits.conf text=") +
                              GetParam().text);
  config::LiveMachine machine(tree.root());
  EXPECT_EQ(session_memlock_kib(machine, "alice", {"ztcp"}), GetParam().kib);
}

INSTANTIATE_TEST_SUITE_P(
    Line, SessionLimit,
    testing::Values(
        LimitCase{"none", "# * - memlock 5", std::nullopt},
        LimitCase{"of_somebody_else", "bob - memlock 5", std::nullopt},
        LimitCase{"of_something_else", "* - nofile 5", std::nullopt},
        LimitCase{"of_all", "* soft memlock 64", 64},
        LimitCase{"of_a_group", "* - memlock 64\\n@ztcp - memlock unlimited", kUnlimitedKib},
        LimitCase{"of_the_user", "alice - memlock 7\\n@ztcp - memlock unlimited", 7},
        LimitCase{"the_last_of_equals", "* - memlock 64\\n* - memlock 65", 65},
        LimitCase{"never_above_the_hard_one", "* soft memlock unlimited\\n* hard memlock 64", 64},
        LimitCase{"minus_one", "* - memlock -1", kUnlimitedKib},
        LimitCase{"nonsense", "* - memlock lots", std::nullopt}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace ztcp::setup
