// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/process_facts.h"

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

TEST(ProcessFactsTest, AProcessThatDoesNotExistHasNone) {
  const ProcessFacts facts = process_facts(0x7fffffff);
  EXPECT_EQ(facts.cpu_throttled_ns, 0U);
  EXPECT_EQ(facts.descriptors_open, 0U);
  EXPECT_EQ(facts.descriptors_limit, 0U);
}

}  // namespace
}  // namespace ztcp::stats
