// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// --dry-run on machines that came along as trees. The JSON of each is stored beside its tree;
// UPDATE_GOLDEN=1 writes it anew.
#include "tools/ztcp_setup/plan.h"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.h"
#include "tests/support/tree.h"
#include "tools/ztcp_setup/report.h"

namespace ztcp::setup {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

std::string tree_text(const std::string& name) {
  return test::Tree::read(std::string(ZTCP_TREES) + "/" + name + ".tree");
}

// Each interface of the trees has an address on a network of its own.
config::InterfaceAddresses some_addresses() {
  config::InterfaceAddresses addresses;
  for (int i = 1; i <= 8; ++i) {
    const auto prefix = *parse_ipv4_prefix(fmt::format("10.77.{}.5/24", i));
    addresses.emplace(fmt::format("ens{}f0", i), prefix);
    addresses.emplace(fmt::format("eth{}", i), prefix);
  }
  return addresses;
}

Plan plan_for(const test::Tree& tree, const config::InterfaceAddresses& addresses,
              std::optional<config::Fabric> existing = std::nullopt) {
  PlanInput input;
  input.root = tree.root();
  input.config_path = config::kDefaultPath;
  input.addresses = addresses;
  input.existing = std::move(existing);
  return make_plan(input);
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, DryRunSaysWhatIsStored) {
  const test::Tree tree(tree_text(GetParam()));
  const std::string json = to_json(plan_for(tree, some_addresses()));
  const std::string path = std::string(ZTCP_TREES) + "/" + GetParam() + ".dry-run.json";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << json;
  EXPECT_EQ(json, test::Tree::read(path));
}

INSTANTIATE_TEST_SUITE_P(Tree, Golden,
                         testing::Values("server-8gpu-9nic", "cloud-flat", "no-gpu",
                                         "too-few-nics"),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Plan, EightGpusNeedFiftyGib) {
  const test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_for(tree, some_addresses());
  ASSERT_TRUE(plan.fabric);
  EXPECT_EQ(plan.hugepage_mib(), 50U * 1024);
  ASSERT_EQ(plan.pages.size(), 2U);
  EXPECT_EQ(plan.pages[0].want, 25U);  // 4 x 5 GiB and half of the 10, in pages of 1 GiB.
  EXPECT_EQ(plan.pages[1].want, 25U);
  EXPECT_EQ(exit_code(plan), kExitGood);
}

TEST(Plan, TheFabricIsAConfigThatLoads) {
  const test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_for(tree, some_addresses());
  ASSERT_TRUE(plan.fabric);
  const auto loaded = config::parse(to_toml(*plan.fabric), plan.fabric->path);
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  EXPECT_EQ(*loaded.fabric, *plan.fabric);
  EXPECT_EQ(loaded.fabric->host.machine_id, "11111111111111111111111111111111");
  EXPECT_EQ(loaded.fabric->nics[3].kernel_driver, "bnxt_en");
}

TEST(Plan, HostClassFollowsTheIommu) {
  const test::Tree server(tree_text("server-8gpu-9nic"));
  EXPECT_EQ(plan_for(server, some_addresses()).fabric->host.host_class, config::HostClass::kIommu);
  const test::Tree cloud(tree_text("cloud-flat"));
  const Plan plan = plan_for(cloud, some_addresses());
  EXPECT_EQ(plan.fabric->host.host_class, config::HostClass::kNoIommu);
  EXPECT_THAT(plan.changes,
              Contains(Field(&Change::command,
                             "echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode")));
  EXPECT_THAT(to_text(plan), HasSubstr("Host class B: no IOMMU"));
}

TEST(Plan, TheDefaultRouteStaysUntouched) {
  const test::Tree tree(tree_text("cloud-flat"));
  const Plan plan = plan_for(tree, some_addresses());
  for (const Change& change : plan.changes) {
    EXPECT_THAT(change.command, Not(HasSubstr("eth0")));
    EXPECT_THAT(change.command, Not(HasSubstr("0000:00:05.0")));
  }
  EXPECT_THAT(to_text(plan), HasSubstr("0000:00:05.0 eth0 is left alone: it carries the default "
                                       "route"));
}

TEST(Plan, ANicWithoutAddressIsAFault) {
  const test::Tree tree(tree_text("cloud-flat"));
  auto addresses = some_addresses();
  addresses.erase("eth3");
  const Plan plan = plan_for(tree, addresses);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.notes[0].problem.where, "eth3");
  EXPECT_EQ(exit_code(plan), kExitFaults);
}

// After set-up the kernel knows nothing of the NICs: the config remembers.
TEST(Plan, ASecondRunFindsNothingToChangeButTheFile) {
  test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan first = plan_for(tree, some_addresses());
  ASSERT_TRUE(first.fabric);
  tree.add_folder("sys/bus/pci/drivers/vfio-pci");
  tree.add_folder("usr/local/tfabric/tools/run");
  tree.add("pages node=0 kib=1048576 total=25 free=25\npages node=1 kib=1048576 total=25 free=25");
  for (const config::Pair& pair : first.pairs) {
    const config::HostNic& nic = first.topology.nics[pair.nic];
    const std::string device =
        std::filesystem::canonical(tree.path("sys/bus/pci/devices/" + nic.pci)).string();
    std::filesystem::remove_all(device + "/net");
    std::filesystem::remove(device + "/driver");
    std::filesystem::create_symlink(tree.path("sys/bus/pci/drivers/vfio-pci"), device + "/driver");
    tree.remove("sys/class/net/" + nic.interface);
  }
  const Plan second = plan_for(tree, {}, first.fabric);
  ASSERT_TRUE(second.fabric);
  EXPECT_EQ(*second.fabric, *first.fabric);
  EXPECT_THAT(second.changes, ElementsAre(Field(&Change::command, "ztcp_setup")));
  EXPECT_EQ(exit_code(second), kExitGood);
}

TEST(Plan, TextListsGpusNicsAndReasons) {
  const test::Tree tree(tree_text("server-8gpu-9nic"));
  const std::string text = to_text(plan_for(tree, some_addresses()));
  EXPECT_THAT(text, HasSubstr("ztcp0   0000:19:00.0  NVIDIA H800"));
  EXPECT_THAT(text, HasSubstr("Hugepages: 50 GiB = 8 GPUs x 5 GiB + 10 GiB"));
  EXPECT_THAT(text, HasSubstr("0000:1b:00.0 (ztcp0): bnxt_en -> vfio-pci"));
  EXPECT_THAT(text, HasSubstr("nothing was changed"));
}

TEST(Plan, WithoutAPairingTextShowsWhatThereIs) {
  const test::Tree tree(tree_text("too-few-nics"));
  const Plan plan = plan_for(tree, {});
  EXPECT_EQ(exit_code(plan), kExitUnusable);
  const std::string text = to_text(plan);
  EXPECT_THAT(text, HasSubstr("not for ztcp: carries the default route"));
  EXPECT_THAT(text, HasSubstr("FAULT: this machine: 4 GPUs need 4 NICs"));
}

}  // namespace
}  // namespace ztcp::setup
