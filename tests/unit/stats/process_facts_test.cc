// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/process_facts.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "core/descriptor.h"

namespace ztcp::stats {
namespace {

TEST(ProcessFactsTest, CountsTheDescriptorsOfAProcess) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::uint32_t before = process_facts(pid).descriptors_open;
  EXPECT_GT(before, 0U);
  std::vector<Descriptor> more;
  for (int i = 0; i < 20; ++i) more.emplace_back(::dup(0));
  EXPECT_EQ(process_facts(pid).descriptors_open, before + 20);
}

TEST(ProcessFactsTest, ReadsTheLimitOfDescriptors) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(process_facts(static_cast<std::uint32_t>(::getpid())).descriptors_limit,
            limit.rlim_cur);
}

// The number that /proc/stat names "steal", read in another way.
TEST(ProcessFactsTest, ReadsTheTimeThatTheHostTook) {
  std::ifstream file("/proc/stat");
  std::string cpu;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
  std::uint64_t steal = 0;
  ASSERT_TRUE(file >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal);
  const std::uint64_t stolen_ns =
      process_facts(static_cast<std::uint32_t>(::getpid())).cpu_stolen_ns;
  EXPECT_GE(stolen_ns, steal * 10'000'000U);
  EXPECT_LE(stolen_ns, (steal + 500) * 10'000'000U);
}

TEST(ProcessFactsTest, AProcessThatDoesNotExistHasNone) {
  const ProcessFacts facts = process_facts(0x7fffffff);
  EXPECT_EQ(facts.cpu_throttled_ns, 0U);
  EXPECT_EQ(facts.descriptors_open, 0U);
  EXPECT_EQ(facts.descriptors_limit, 0U);
}

}  // namespace
}  // namespace ztcp::stats
