// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The source of a NIC's speed when its driver does not report it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/plan/plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using test::plan_of;
using test::tree_text;
using test::without_iommu;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::uint32_t> speeds_of(const Plan& plan) {
  std::vector<std::uint32_t> speeds;
  for (const config::Nic& nic : plan.fabric->nics) speeds.push_back(nic.speed_mbps);
  return speeds;
}

std::vector<config::Check> speed_notes(const Plan& plan) {
  std::vector<config::Check> notes;
  for (const config::Check& note : plan.notes)
    if (note.name == "speed") notes.push_back(note);
  return notes;
}

// virtio reports no speed.
TEST(PlanSpeed, AnUnknownSpeedIsAWarning) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = without_iommu();
  const Plan plan = plan_of(host, request);
  EXPECT_THAT(speeds_of(plan), testing::Each(0U));
  ASSERT_EQ(speed_notes(plan).size(), 1U);
  const config::Check note = speed_notes(plan).front();
  EXPECT_EQ(note.severity, config::Severity::kWarning);
  EXPECT_THAT(note.problem.where, HasSubstr("ztcp0, ztcp1, "));
  EXPECT_THAT(note.problem.what, HasSubstr("the speed is unknown, so NCCL is told 10000 Mb/s"));
  EXPECT_THAT(note.problem.mend, HasSubstr("ztcp_setup --speed MBPS"));

  request.speed_mbps = 25000;
  request.speeds_mbps = {{"eth2", 50000}, {"0000:00:12.0", 40000}};
  const Plan stated = plan_of(host, request);
  const auto speed_of = [&](std::string_view pci) {
    for (const config::Nic& nic : stated.fabric->nics)
      if (nic.pci == pci) return nic.speed_mbps;
    return 0U;
  };
  EXPECT_EQ(speed_of("0000:00:10.0"), 25000U);
  EXPECT_EQ(speed_of("0000:00:11.0"), 50000U);
  EXPECT_EQ(speed_of("0000:00:12.0"), 40000U);
  EXPECT_THAT(speed_notes(stated), IsEmpty());

  request.speeds_mbps = {{"eth77", 50000}};
  const Plan wrong = plan_of(host, request);
  ASSERT_EQ(speed_notes(wrong).size(), 1U);
  EXPECT_EQ(speed_notes(wrong)[0].severity, config::Severity::kFault);
  EXPECT_THAT(speed_notes(wrong)[0].problem.where, HasSubstr("eth77"));

  // Once stated it is kept in the config, also when the NIC returns to a kernel driver.
  test::write_config(host, *stated.fabric);
  EXPECT_THAT(speeds_of(plan_of(host, without_iommu())), speeds_of(stated));
}

TEST(PlanSpeed, AnInstanceTypeGivesTheSpeedOfItsNics) {
  FakeHost host(tree_text("cloud-flat"));
  std::string& type = host.state.values["/sys/class/dmi/id/product_name"];
  host.state.values["/sys/class/dmi/id/sys_vendor"] = "Amazon EC2";
  type = "p4d.24xlarge";
  const Plan plan = plan_of(host, without_iommu());
  EXPECT_THAT(speeds_of(plan), testing::Each(50000U)) << "400 Gb/s for eight NICs";
  EXPECT_THAT(speed_notes(plan), IsEmpty());
  EXPECT_THAT(to_text(plan, {}), HasSubstr("Speed: p4d.24xlarge has 400000 Mb/s for all NICs"));
  type = "p5.48xlarge";
  EXPECT_THAT(speeds_of(plan_of(host, without_iommu())), testing::Each(100000U))
      << "the most that a network card carries";
  type = "m5.large";
  EXPECT_THAT(speeds_of(plan_of(host, without_iommu())), testing::Each(0U));
}

}  // namespace
}  // namespace ztcp::setup
