// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

TEST(BusyHost, CpuQuotaByItsShareOfTheTime) {
  Looks looks;
  looks.now().process.cpu_throttled_ns = 5'000'000;
  EXPECT_TRUE(looks.findings().empty());
  looks.now().process.cpu_throttled_ns = 100'000'000;
  Finding finding = first(looks.findings(), Rule::kQuota);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NE(finding.text.find("stopped for 100 ms, summed over its CPUs, in the last 1 s"),
            std::string::npos);
  looks.now().process.cpu_throttled_ns = 400'000'000;
  EXPECT_EQ(first(looks.findings(), Rule::kQuota).severity, Severity::kSevere);
}

TEST(BusyHost, LateTurnsNameTheCpu) {
  Looks looks;
  looks.counter(Counter::kLateTurns) = 1;
  looks.counter(Counter::kLateTurnTime) = 1'200'000;
  EXPECT_TRUE(looks.findings().empty());
  looks.counter(Counter::kLateTurns) = 14;
  looks.counter(Counter::kLateTurnTime) = 31'000'000;
  const Finding finding = first(looks.findings(), Rule::kLate);
  EXPECT_EQ(finding.subject, "ztcp0 of process 4242");
  EXPECT_NE(finding.text.find("late 14 times in the last 1 s, by 31 ms in all on CPU 5"),
            std::string::npos)
      << finding.text;
}

TEST(BusyHost, LateTurnsNameTheHostThatTookCpuTime) {
  Looks looks;
  looks.counter(Counter::kLateTurns) = 14;
  looks.counter(Counter::kLateTurnTime) = 31'000'000;
  const auto ends_with = [&](const char* end) {
    const std::string text = first(looks.findings(), Rule::kLate).text;
    EXPECT_TRUE(text.ends_with(end)) << text;
  };
  ends_with(": other threads have its CPUs");
  looks.now().process.cpu_stolen_ns = 40'000'000;
  ends_with(": the host of this virtual machine took 40 ms of CPU time from it");
  looks.now().process.cpu_stolen_ns = 10'000'000;
  ends_with(
      ": other threads have its CPUs, and the host of this virtual machine took 10 ms of CPU "
      "time from it");
}

TEST(BusyHost, DescriptorTableNearlyFull) {
  Looks looks;
  looks.now().process.descriptors_open = 900;
  EXPECT_TRUE(looks.findings().empty());
  looks.now().process.descriptors_open = 950;
  EXPECT_EQ(first(looks.findings(), Rule::kDescriptors).severity, Severity::kWarning);
  looks.now().process.descriptors_open = 1020;
  const Finding finding = first(looks.findings(), Rule::kDescriptors);
  EXPECT_EQ(finding.severity, Severity::kSevere);
  EXPECT_NE(finding.text.find("1020 of 1024"), std::string::npos);
}

TEST(BusyHost, UnknownLimitIsNoFault) {
  Looks looks;
  looks.now().process.descriptors_limit = 0;
  EXPECT_TRUE(looks.findings().empty());
}

}  // namespace
}  // namespace ztcp::stat
