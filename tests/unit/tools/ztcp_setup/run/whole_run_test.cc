// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whole runs on the machines of tests/data/trees: plan, --dry-run, set-up, --check, a second run
// and undo see the same machine, and agree about it.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/text.h"
#include "tests/unit/tools/ztcp_setup/agreement.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/run/commands.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::announced;
using test::dry_run_of;
using test::expect_same;
using test::expect_seen;
using test::FakeHost;
using test::lines_of;
using test::Moment;
using test::names_of;
using test::plan_of;
using test::reverted_of;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

FakeHost machine(const std::string& tree) {
  FakeHost host(test::tree_text(tree));
  host.state.values["/proc/self/status"] = "CapEff:\tffffffffffffffff";  // Checked by root.
  // Not installed from a package, on a machine with systemd.
  for (const char* folder : {"/run", "/run/systemd", "/run/systemd/system", "/opt"})
    host.add_folder(folder);
  host.add_file("/opt/ztcp_setup", "ELF", {0755, 0, 0});
  host.state.nodes["/proc/self/exe"] = {FileKind::kLink, {0777, 0, 0}, "/opt/ztcp_setup"};
  return host;
}

std::string faults_of(const std::vector<config::Check>& checks) {
  config::Problems faults;
  for (const config::Check& check : checks)
    if (check.severity == config::Severity::kFault) faults.push_back(check.problem);
  return all_of(faults);
}

// The faults found by --check.
std::string check(FakeHost& host) {
  const CheckReport report = check_here(host, config::kDefaultPath, nullptr);
  // For tools that compare hosts.
  EXPECT_NE(report.version, "");
  EXPECT_EQ(report.digest.empty(), !report.load_problems.empty());
  return all_of(report.load_problems) + faults_of(report.checks);
}

struct WholeRun {
  std::string name;
  std::string tree;
  PlanRequest request;
};

PlanRequest past_kernel() {
  PlanRequest request;
  request.transport = Transport::kXdp;
  request.group = "ztcp";
  return request;
}

std::vector<WholeRun> whole_runs() {
  return {{"class_a", "server-8gpu-9nic", {}},
          {"class_b", "cloud-flat", test::without_iommu()},
          {"for_a_group_with_grubby", "vlan", test::for_a_group()},
          {"leases", "dhcp", test::taken_by_name()},
          {"for_a_group_with_systemd_boot", "systemd-boot", test::for_a_group()},
          {"kernel_sockets", "too-few-nics", {}},
          {"af_xdp", "too-few-nics", past_kernel()},
          {"rdma", "rdma", test::over_rdma()}};
}

class WholeRuns : public testing::TestWithParam<WholeRun> {};

TEST_P(WholeRuns, AllCommandsAgreeAboutTheMachine) {
  FakeHost host = machine(GetParam().tree);
  const FakeHost::State bare = host.state;
  const DryRun told = dry_run_of(host, GetParam().request);
  const Plan& plan = told.plan;
  ASSERT_TRUE(plan.fabric && !plan.has_faults()) << faults_of(plan.notes);
  const auto first = announced(told).changes;
  EXPECT_EQ(host.changes, 0U) << "looking changes nothing";
  expect_seen(host, first, Moment::kBefore);
  EXPECT_THAT(check(host), HasSubstr("ztcp is not set up on this host"));

  const Outcome done = test::set_up(host, plan.resources);
  ASSERT_TRUE(done.complete()) << all_of(done.faults);
  EXPECT_THAT(names_of(done), ElementsAreArray(names_of(first)));
  expect_seen(host, first, Moment::kAfter);
  EXPECT_EQ(check(host), "");

  const DryRun again = dry_run_of(host, GetParam().request);
  EXPECT_EQ(again.plan.fabric, plan.fabric);
  EXPECT_THAT(lines_of(again), IsEmpty());
  const auto changes = host.changes;
  EXPECT_THAT(names_of(test::set_up(host, again.plan.resources)), IsEmpty());
  EXPECT_EQ(host.changes, changes);

  const Outcome undone = test::undo(host);
  ASSERT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
  EXPECT_THAT(lines_of(dry_run_of(host, GetParam().request)), ElementsAreArray(lines_of(told)));
}

INSTANTIATE_TEST_SUITE_P(Trees, WholeRuns, testing::ValuesIn(whole_runs()),
                         [](const auto& run) { return run.param.name; });

TEST(WholeRun, EveryKindOfResourceOccurs) {
  std::set<std::size_t> kinds;
  for (const WholeRun& run : whole_runs()) {
    FakeHost host = machine(run.tree);
    for (const Resource& resource : plan_of(host, run.request).resources)
      kinds.insert(resource.what.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Kinds::What>);
}

PlanRequest one_nic() {
  PlanRequest request;
  request.no_iommu = true;
  request.nics = 1;
  request.per_gpu_mib = request.spare_mib = 1024;
  return request;
}

TEST(WholeRun, ASecondRunMayChangeThePages) {
  FakeHost host = machine("no-gpu");
  const FakeHost::State bare = host.state;
  PlanRequest request = one_nic();
  ASSERT_TRUE(test::set_up(host, plan_of(host, request).resources).complete());
  request.per_gpu_mib = 2048;
  const DryRun more = dry_run_of(host, request);
  ASSERT_TRUE(more.plan.fabric && !more.plan.has_faults()) << faults_of(more.plan.notes);
  const auto told = announced(more).changes;
  EXPECT_FALSE(told.empty());
  const Outcome done = test::set_up(host, more.plan.resources);
  EXPECT_TRUE(done.complete()) << all_of(done.faults);
  EXPECT_THAT(names_of(done), ElementsAreArray(names_of(told)));
  EXPECT_THAT(lines_of(dry_run_of(host, request)), IsEmpty());
  EXPECT_TRUE(test::undo(host).complete());
  expect_same(host.state, bare);
}

// The unwanted NIC is given back before the other is taken.
TEST(WholeRun, ASecondRunMayChangeTheNic) {
  FakeHost host = machine("vlan");
  const FakeHost::State bare = host.state;
  PlanRequest request = test::for_a_group();
  request.nics = 1;
  const Plan plan = plan_of(host, request);
  ASSERT_TRUE(test::set_up(host, plan.resources).complete());
  request.selection.keep = {plan.fabric->nics.front().pci};
  const DryRun other = dry_run_of(host, request);
  ASSERT_TRUE(other.plan.fabric && !other.plan.has_faults()) << faults_of(other.plan.notes);
  const auto told = announced(other);
  EXPECT_THAT(told.reverted, testing::Contains(HasSubstr(plan.fabric->nics.front().pci)));
  const Outcome done = test::set_up(host, other.plan.resources);
  EXPECT_TRUE(done.complete()) << all_of(done.faults);
  EXPECT_THAT(reverted_of(done, plan.resources), ElementsAreArray(told.reverted));
  EXPECT_THAT(names_of(done), ElementsAreArray(names_of(told.changes)));
  expect_seen(host, told.changes, Moment::kAfter);
  EXPECT_TRUE(test::undo(host).complete());
  expect_same(host.state, bare);
}

// Nothing is taken before the boot that brings the IOMMU; then all is.
TEST(WholeRun, NicsAreTakenAfterTheBootWithTheIommu) {
  FakeHost host = machine("no-gpu");
  const FakeHost::State bare = host.state;
  PlanRequest request = one_nic();
  request.no_iommu = false;
  request.ask_iommu = true;
  const DryRun before = dry_run_of(host, request);
  ASSERT_TRUE(before.plan.fabric && before.plan.awaits_reboot) << faults_of(before.plan.notes);
  EXPECT_THAT(names_of(test::set_up(host, before.plan.resources, Scope::kMore)),
              ElementsAreArray(names_of(announced(before).changes)));
  EXPECT_THAT(lines_of(dry_run_of(host, request)), IsEmpty());

  host.boot();
  host.state.links = bare.links;  // As the machine configures its network.
  int group = 20;
  for (auto& [pci, nic] : host.state.nics) nic.group = std::to_string(group++);
  const DryRun after = dry_run_of(host, request);
  ASSERT_TRUE(after.plan.fabric && !after.plan.has_faults() && !after.plan.awaits_reboot)
      << faults_of(after.plan.notes);
  const Outcome done = test::set_up(host, after.plan.resources);
  EXPECT_TRUE(done.complete()) << all_of(done.faults);
  EXPECT_THAT(names_of(done), ElementsAreArray(names_of(announced(after).changes)));
  EXPECT_THAT(lines_of(dry_run_of(host, request)), IsEmpty());
}

// Also if runs in between took the edit over and found nothing to change, once or often.
TEST(WholeRun, UndoKeepsAnEditAfterASecondRun) {
  FakeHost host = machine("too-few-nics");
  ASSERT_TRUE(test::set_up(host, plan_of(host).resources).complete());
  std::string edited = host.state.nodes.at(config::kDefaultPath).text;
  const auto at = edited.find("#flows = 0");
  ASSERT_NE(at, std::string::npos);
  edited.replace(at, 10, "flows = 4");
  host.add_file(config::kDefaultPath, edited);
  for (int run = 0; run < 2; ++run) {
    const Plan again = plan_of(host);
    ASSERT_TRUE(again.fabric && !again.has_faults()) << faults_of(again.notes);
    EXPECT_EQ(again.fabric->messages.flows, 4U);
    EXPECT_THAT(names_of(test::set_up(host, again.resources)), IsEmpty());
  }
  const Outcome undone = test::undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes), HasSubstr("ztcp.conf.edited"));
  const auto kept = host.read_file(std::string(config::kDefaultPath) + ".edited");
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, edited);
}

// A value that set-up writes itself is not an edit, nor is a return to the text that it wrote.
TEST(WholeRun, ARewriteBySetUpIsNotAnEdit) {
  FakeHost host = machine("too-few-nics");
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(test::set_up(host, plan_of(host).resources).complete());
  const std::string text = host.state.nodes.at(config::kDefaultPath).text;
  host.add_file(config::kDefaultPath, text + "# mine\n");
  ASSERT_TRUE(test::set_up(host, plan_of(host).resources).complete());
  host.add_file(config::kDefaultPath, text);
  PlanRequest faster;
  faster.speed_mbps = 25000;
  ASSERT_TRUE(test::set_up(host, plan_of(host, faster).resources).complete());
  EXPECT_THAT(all_of(test::undo(host).notes), IsEmpty());
  expect_same(host.state, bare);
}

// The result of --boot for a config that was edited, or is no longer a file.
TEST(WholeRun, BootReadsTheConfigOfTheMachine) {
  FakeHost host = machine("no-gpu");
  ASSERT_TRUE(test::set_up(host, plan_of(host, one_nic()).resources).complete());
  FakeHost::Node& config = host.state.nodes.at(config::kDefaultPath);
  const std::string text = config.text;
  config.text += "mtu = 9000\n";
  PlanRequest request = one_nic();
  request.config_path = config::kDefaultPath;
  EXPECT_THAT(to_string(plan_here(host, request).error()), HasSubstr("unknown key \"nic[0].mtu\""));
  EXPECT_THAT(check(host), HasSubstr("unknown key \"nic[0].mtu\""));
  config.text = std::string(2U << 20, '#');
  EXPECT_THAT(check(host), HasSubstr("not a config file"));
  config = {FileKind::kPipe, {0600, 0, 0}, ""};
  EXPECT_THAT(to_string(plan_here(host, request).error()), HasSubstr("is a pipe, not a file"));
  config = {FileKind::kLink, {0777, 0, 0}, "moved.conf"};
  host.add_file(config::folder_of(config::kDefaultPath) + "/moved.conf", text);
  EXPECT_EQ(check_here(host, config::kDefaultPath, nullptr).load_problems.size(), 0U);
}

}  // namespace
}  // namespace ztcp::setup
