// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The output of --dry-run for the machines of tests/data/trees. The JSON of each is stored beside
// its tree, without the config's comments, so that a new key changes none of them; UPDATE_GOLDEN=1
// writes it anew.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/support/tree.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::dry_run_of;
using test::FakeHost;
using test::for_a_group;
using test::nics_without_gpus;
using test::plan_of;
using test::taken_by_name;
using test::tree_text;
using test::with_ustack;
using test::without_iommu;

PlanRequest with_verbs() {
  PlanRequest request;
  request.transport = Transport::kVerbs;
  return request;
}

struct GoldenRow {
  const char* tree;
  const char* golden;
  PlanRequest request;
  bool again;  // After everything was applied once.
  friend void PrintTo(const GoldenRow& row, std::ostream* out) { *out << row.golden; }
};
class Golden : public testing::TestWithParam<GoldenRow> {};

// The first line of a config in JSON, and the keys that are set.
std::string without_comments(const std::string& config) {
  constexpr std::string_view kNewline = "\\n";
  std::string text;
  for (std::size_t begin = 0; begin < config.size();) {
    const std::size_t end = config.find(kNewline, begin);
    const std::string line = config.substr(begin, end - begin);
    const bool is_last = end == std::string::npos;
    if (begin == 0 || is_last || (!line.empty() && line.front() != '#'))
      text += is_last ? line : line + std::string(kNewline);
    begin = is_last ? config.size() : end + kNewline.size();
  }
  return text;
}

std::string without_configs_comments(const std::string& json) {
  std::istringstream lines(json);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += (line.find("Every key is described in ztcp.conf(5)") != std::string::npos
                 ? without_comments(line)
                 : line) +
            "\n";
  return text;
}

TEST_P(Golden, DryRunMatchesTheStoredJson) {
  FakeHost host(tree_text(GetParam().tree));
  if (GetParam().again) {
    ASSERT_TRUE(test::set_up(host, plan_of(host, GetParam().request).resources).complete());
  }
  const DryRun run = dry_run_of(host, GetParam().request);
  const std::string json = without_configs_comments(to_json(run.plan, run.changes));
  const std::string path = std::string(ZTCP_TREES) + "/" + GetParam().golden + ".dry-run.json";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << json;
  EXPECT_EQ(json, ztcp::test::Tree::read(path));
}

INSTANTIATE_TEST_SUITE_P(
    Tree, Golden,
    testing::Values(GoldenRow{"server-8gpu-9nic", "server-8gpu-9nic", {}, false},
                    GoldenRow{"server-8gpu-9nic", "server-8gpu-9nic-again", {}, true},
                    GoldenRow{"cloud-flat", "cloud-flat", without_iommu(), false},
                    GoldenRow{"cloud-flat", "cloud-flat-refused", {}, false},
                    GoldenRow{"cloud-flat", "cloud-flat-again", without_iommu(), true},
                    GoldenRow{"vlan", "vlan", for_a_group(), false},
                    GoldenRow{"systemd-boot", "systemd-boot", for_a_group(), false},
                    GoldenRow{"dhcp", "dhcp", taken_by_name(), false},
                    GoldenRow{"shared-group", "shared-group", nics_without_gpus(), false},
                    GoldenRow{"own-group", "own-group", {}, false},
                    GoldenRow{"no-gpu", "no-gpu", {}, false},
                    GoldenRow{"too-few-nics", "too-few-nics", {}, false},
                    GoldenRow{"rdma", "rdma", with_verbs(), false},
                    GoldenRow{"rdma", "rdma-again", with_verbs(), true},
                    GoldenRow{"rdma", "rdma-unused", {}, false},
                    GoldenRow{"too-few-nics", "too-few-nics-refused", with_ustack(), false}),
    [](const auto& row) {
      std::string name = row.param.golden;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Scripts read it: changes must be intended.
TEST(Json, CheckMatchesTheStoredJson) {
  CheckReport report;
  report.version = "1.2.3";
  report.digest = "5d8b328e538f";
  report.config_path = "/usr/local/tfabric/tools/config/ztcp.conf";
  report.checks = {
      {"schema", config::Severity::kGood, {"ztcp.conf", "schema 1", ""}},
      {"hugepages", config::Severity::kWarning, {"NUMA node 0", "too few", "echo 25 > x"}},
      {"driver", config::Severity::kFault, {"ztcp0", "bound to ena", "sudo ztcp_setup"}}};
  EXPECT_EQ(to_json(report), ztcp::test::Tree::read(ZTCP_TREES "/../setup/check.json"));
  report.checks.clear();
  report.digest.clear();
  report.load_problems = config::parse("schema = 2\n", report.config_path).problems;
  EXPECT_EQ(to_json(report),
            ztcp::test::Tree::read(ZTCP_TREES "/../setup/check-newer-config.json"));
}

}  // namespace
}  // namespace ztcp::setup
