// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/config_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/tree_plan.h"

namespace ztcp::setup {
namespace {

using config::Severity;
using test::FakeHost;
using testing::HasSubstr;

constexpr const char* kPath = "/opt/ztcp.conf";

struct Scene {
  FakeHost host;
  config::Fabric fabric;

  explicit Scene(config::NicDriver driver = config::NicDriver::kSocket) {
    host.add_folder("/opt");
    fabric.path = kPath;
    fabric.nics.emplace_back().driver = driver;
  }
  void write(std::uint32_t mode, std::uint32_t group = 0) {
    host.add_file(kPath, "schema = 1\n", {mode, 0, group});
  }
  void lock() { fabric.messages.cluster_key = std::string(64, 'a'); }
  ConfigAccess access() { return config_access(host, fabric); }
};

TEST(ConfigAccess, WithoutASecretEverybodyCanRead) {
  Scene scene;
  EXPECT_EQ(scene.access().mode, 0644U);
  scene.write(0644);
  EXPECT_EQ(scene.access().mode, 0644U);
  EXPECT_EQ(scene.access().group, "");
}

TEST(ConfigAccess, NarrowedPermissionsStay) {
  Scene scene;
  scene.write(0640, scene.host.groups.at("ztcp"));
  EXPECT_EQ(scene.access().mode, 0640U);
  EXPECT_EQ(scene.access().group, "ztcp");
  scene.lock();
  EXPECT_EQ(scene.access().mode, 0640U);
  EXPECT_EQ(scene.access().group, "ztcp") << "jobs of its members would be shut out";
  EXPECT_FALSE(scene.access().note);
  scene.write(0600);
  EXPECT_EQ(scene.access().mode, 0600U);
  scene.write(0660, scene.host.groups.at("ztcp"));
  EXPECT_EQ(scene.access().mode, 0640U) << "nobody but root changes it";
}

TEST(ConfigAccess, ASecretNeedsAGroup) {
  for (const auto driver : {config::NicDriver::kSocket, config::NicDriver::kVerbs}) {
    Scene scene(driver);
    scene.write(0644);
    scene.lock();
    const ConfigAccess access = scene.access();
    ASSERT_TRUE(access.note);
    EXPECT_EQ(access.note->severity, Severity::kFault);
    EXPECT_THAT(access.note->problem.what, HasSubstr("is readable by everybody (mode 0644)"));
    EXPECT_THAT(access.note->problem.mend, HasSubstr("ztcp_setup --group GROUP"));
  }
}

TEST(ConfigAccess, WithAGroupTheNewModeIsReported) {
  Scene scene;
  scene.write(0644);
  scene.lock();
  scene.fabric.host.group = "ztcp";
  const ConfigAccess access = scene.access();
  EXPECT_EQ(access.mode, 0640U);
  EXPECT_EQ(access.group, "ztcp");
  ASSERT_TRUE(access.note);
  EXPECT_EQ(access.note->severity, Severity::kWarning);
  EXPECT_THAT(access.note->problem.what, HasSubstr("set-up makes it 0640 root:ztcp"));
  scene.write(0640, scene.host.groups.at("ztcp"));
  EXPECT_FALSE(scene.access().note) << "said once";
}

TEST(ConfigAccess, AUserWithoutAGroupIsJudgedWithTheRequest) {
  Scene scene;
  scene.write(0644);
  scene.lock();
  scene.fabric.host.user = "alice";
  EXPECT_FALSE(scene.access().note) << "said once";
}

TEST(ConfigAccess, NicsDrivenByRootOnlyNeedNoGroup) {
  Scene scene(config::NicDriver::kPci);
  scene.write(0644);
  scene.lock();
  EXPECT_EQ(scene.access().mode, 0640U);
  EXPECT_EQ(scene.access().note->severity, Severity::kWarning);
}

}  // namespace
}  // namespace ztcp::setup
