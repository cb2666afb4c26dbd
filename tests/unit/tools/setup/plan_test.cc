// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// --dry-run on machines that came along as trees. The JSON of each is stored beside its tree;
// UPDATE_GOLDEN=1 writes it anew.
#include "tools/ztcp_setup/plan.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.h"
#include "config/machine.h"
#include "tests/support/tree.h"
#include "tools/ztcp_setup/report.h"

namespace ztcp::setup {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string tree_text(const std::string& name) {
  return test::Tree::read(std::string(ZTCP_TREES) + "/" + name + ".tree");
}

Plan plan_for(const test::Tree& tree, Request request = {},
              std::optional<config::Fabric> existing = std::nullopt) {
  PlanInput input;
  input.root = tree.root();
  input.request = std::move(request);
  input.request.config_path = config::kDefaultPath;
  input.network = tree.network();
  if (existing) input.existing_text = config::to_toml(*existing);
  input.existing = std::move(existing);
  return make_plan(input);
}

Request without_iommu() {
  Request request;
  request.no_iommu = true;
  return request;
}

// What the machine is when all wishes are granted, as far as a tree can be it.
void grant(const Wishes& wishes, test::Tree& tree) {
  for (const Wish& wish : wishes) {
    if (const auto* file = std::get_if<wish::File>(&wish.what)) {
      tree.add_file(file->path.substr(1), file->text);
      std::filesystem::permissions(tree.root() + file->path,
                                   static_cast<std::filesystem::perms>(file->mode));
    } else if (const auto* folder = std::get_if<wish::Folder>(&wish.what)) {
      tree.add_folder(folder->path.substr(1));
      std::filesystem::permissions(tree.root() + folder->path,
                                   static_cast<std::filesystem::perms>(folder->mode));
    } else if (const auto* value = std::get_if<wish::Value>(&wish.what)) {
      tree.add_file(value->path.substr(1), value->value + "\n");
    } else if (const auto* module = std::get_if<wish::Module>(&wish.what)) {
      tree.add_folder("sys/bus/pci/drivers/" + module->name);
    } else if (const auto* mount = std::get_if<wish::Mount>(&wish.what)) {
      tree.add_file("proc/mounts", "none " + mount->path + " hugetlbfs rw,pagesize=1024M 0 0\n");
    } else if (const auto* driver = std::get_if<wish::Driver>(&wish.what)) {
      const std::string device =
          std::filesystem::canonical(tree.path("sys/bus/pci/devices/" + driver->pci)).string();
      for (const auto& net : config::interfaces_of(device)) tree.remove("sys/class/net/" + net);
      for (const auto& child : config::list_folder(device))
        if (child == "net" || child.starts_with("virtio"))
          std::filesystem::remove_all(device + "/" + child);
      std::filesystem::remove(device + "/driver");
      std::filesystem::create_symlink(tree.path("sys/bus/pci/drivers/") + driver->driver,
                                      device + "/driver");
    } else if (const auto* unit = std::get_if<wish::Unit>(&wish.what)) {
      tree.add_link("etc/systemd/system/multi-user.target.wants/" + unit->name,
                    "/usr/lib/systemd/system/" + unit->name);
    }
  }
}

struct Case {
  const char* tree;
  const char* golden;
  Request request;
  bool again;  // After all was granted once.
};
class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, DryRunSaysWhatIsStored) {
  test::Tree tree(tree_text(GetParam().tree));
  Plan plan = plan_for(tree, GetParam().request);
  if (GetParam().again) {
    grant(plan.wishes, tree);
    plan = plan_for(tree, GetParam().request, plan.fabric);
  }
  const std::string json = to_json(plan);
  const std::string path = std::string(ZTCP_TREES) + "/" + GetParam().golden + ".dry-run.json";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << json;
  EXPECT_EQ(json, test::Tree::read(path));
}

INSTANTIATE_TEST_SUITE_P(
    Tree, Golden,
    testing::Values(Case{"server-8gpu-9nic", "server-8gpu-9nic", {}, false},
                    Case{"server-8gpu-9nic", "server-8gpu-9nic-again", {}, true},
                    Case{"cloud-flat", "cloud-flat", without_iommu(), false},
                    Case{"cloud-flat", "cloud-flat-refused", {}, false},
                    Case{"no-gpu", "no-gpu", {}, false},
                    Case{"too-few-nics", "too-few-nics", {}, false}),
    [](const auto& row) {
      std::string name = row.param.golden;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Plan, EightGpusNeedFiftyGib) {
  const test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_for(tree);
  ASSERT_TRUE(plan.fabric);
  EXPECT_EQ(plan.hugepage_mib(), 50U * 1024);
  ASSERT_EQ(plan.pages.size(), 2U);
  EXPECT_EQ(plan.pages[0].want, 25U);  // 4 x 5 GiB and half of the 10, in pages of 1 GiB.
  EXPECT_EQ(plan.pages[1].want, 25U);
  EXPECT_EQ(exit_code(plan), kExitGood);
}

TEST(Plan, TheFabricIsAConfigThatLoads) {
  const test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_for(tree);
  ASSERT_TRUE(plan.fabric);
  const auto loaded = config::parse(to_toml(*plan.fabric), plan.fabric->path);
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  EXPECT_EQ(*loaded.fabric, *plan.fabric);
  EXPECT_EQ(loaded.fabric->host.machine_id, "11111111111111111111111111111111");
  EXPECT_EQ(loaded.fabric->nics[3].kernel_driver, "bnxt_en");
}

TEST(Plan, HostClassFollowsTheIommu) {
  const test::Tree server(tree_text("server-8gpu-9nic"));
  EXPECT_EQ(plan_for(server).fabric->host.host_class, config::HostClass::kIommu);
  const test::Tree cloud(tree_text("cloud-flat"));
  const Plan plan = plan_for(cloud, without_iommu());
  EXPECT_EQ(plan.fabric->host.host_class, config::HostClass::kNoIommu);
  EXPECT_THAT(plan.changes,
              Contains(Field(&Change::command,
                             "echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode")));
  EXPECT_THAT(to_text(plan), HasSubstr("Host class B: no IOMMU"));
}

TEST(Plan, TheDefaultRouteStaysUntouched) {
  const test::Tree tree(tree_text("cloud-flat"));
  const Plan plan = plan_for(tree, without_iommu());
  EXPECT_FALSE(plan.changes.empty());
  for (const Change& change : plan.changes) {
    EXPECT_THAT(change.command, Not(HasSubstr("eth0")));
    EXPECT_THAT(change.command, Not(HasSubstr("0000:00:05.0")));
  }
  EXPECT_THAT(to_text(plan), HasSubstr("0000:00:05.0 eth0 is left alone: it carries the default "
                                       "route"));
}

config::Check only_fault(const Plan& plan) {
  std::vector<config::Check> faults;
  for (const config::Check& note : plan.notes)
    if (note.severity == config::Severity::kFault) faults.push_back(note);
  EXPECT_EQ(faults.size(), 1U);
  if (faults.size() != 1) return {};
  EXPECT_TRUE(plan.has_faults());
  EXPECT_FALSE(faults[0].problem.mend.empty());
  return faults[0];
}

TEST(Plan, ANicWithoutAddressIsAFault) {
  std::string text = tree_text("cloud-flat");
  text.erase(text.find("address if=eth3"), std::strlen("address if=eth3 ip=10.77.3.5/24\n"));
  const test::Tree tree(text);
  const Plan plan = plan_for(tree, without_iommu());
  EXPECT_EQ(only_fault(plan).problem.where, "eth3");
  EXPECT_EQ(exit_code(plan), kExitFaults);
}

// After set-up the kernel knows nothing of the NICs: the config remembers.
TEST(Plan, ASecondRunFindsNothingToChange) {
  for (const char* name : {"server-8gpu-9nic", "cloud-flat"}) {
    test::Tree tree(tree_text(name));
    const Plan first = plan_for(tree, without_iommu());
    ASSERT_TRUE(first.fabric);
    grant(first.wishes, tree);
    const Plan second = plan_for(tree, {}, first.fabric);
    ASSERT_TRUE(second.fabric) << name;
    EXPECT_EQ(*second.fabric, *first.fabric);
    EXPECT_THAT(second.changes, IsEmpty()) << second.changes.front().what;
  }
}

TEST(Plan, TextListsGpusNicsAndReasons) {
  const test::Tree tree(tree_text("server-8gpu-9nic"));
  const std::string text = to_text(plan_for(tree));
  EXPECT_THAT(text, HasSubstr("ztcp0   0000:19:00.0  NVIDIA H800"));
  EXPECT_THAT(text, HasSubstr("Hugepages: 50 GiB = 8 GPUs x 5 GiB + 10 GiB"));
  EXPECT_THAT(text, HasSubstr("0000:1b:00.0 (ztcp0): bnxt_en -> vfio-pci\n"));
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
