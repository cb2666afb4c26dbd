// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "hugepage/budget.h"

#include <gtest/gtest.h>

namespace ztcp::hugepage {
namespace {

constexpr std::uint32_t k2Mib = 2048;
constexpr std::uint32_t k1Gib = 1048576;

TEST(Budget, PagesAreRoundedUp) {
  EXPECT_EQ(pages_for(5, k2Mib), 3U);
  EXPECT_EQ(pages_for(1025, k1Gib), 2U);
  EXPECT_EQ(pages_for(0, k2Mib), 0U);
}

TEST(Budget, AProcessTakesWholePagesForItsNics) {
  // 12288 frames of 9512 bytes with overhead, and 16 MiB of headers and rings.
  EXPECT_EQ(nic_mib(9000), 16U + 12288U * 9512 / (1U << 20U));
  EXPECT_EQ(nic_mib(1500), nic_mib(2048)) << "buffers are no smaller";
  const std::vector<NicNeed> nics = {{0, 9000}, {1, 9000}, {1, 9000}, {-1, 9000}};
  auto needs = process_needs(nics, 5120, k2Mib);
  ASSERT_EQ(needs.size(), 2U);
  EXPECT_EQ(needs[0].node, 0);
  EXPECT_EQ(needs[0].mib, (kDpdkBaseMib + 2 * nic_mib(9000) + 1) / 2 * 2);
  EXPECT_EQ(needs[1].mib, needs[0].mib);
  needs = process_needs(nics, 5120, k1Gib);
  EXPECT_EQ(needs[0].mib, 1024U);
  // The last NICs get the rest of the limit: 200 - 143.
  needs = process_needs(nics, 200, k2Mib);
  EXPECT_EQ(needs[0].mib, 144U);
  EXPECT_EQ(needs[1].mib, 58U);
  EXPECT_TRUE(process_needs({}, 5120, k2Mib).empty());
}

// Each queue has its own frames; half as many receive frames with several queues.
TEST(Budget, EachQueueNeedsItsOwnFrames) {
  EXPECT_EQ(nic_mib(9000, 1), nic_mib(9000));
  EXPECT_EQ(nic_mib(9000, 4), 4 * (16U + 8192U * 9512 / (1U << 20U)));
  const std::vector<NicNeed> nics = {{.node = 0, .mtu_bytes = 9000, .queues = 4},
                                     {.node = 0, .mtu_bytes = 9000}};
  EXPECT_EQ(unlimited_mib(nics), kDpdkBaseMib + nic_mib(9000, 4) + nic_mib(9000));
  EXPECT_EQ(process_needs(nics, 5120, k2Mib)[0].mib,
            (kDpdkBaseMib + nic_mib(9000, 4) + nic_mib(9000) + 1) / 2 * 2);
  EXPECT_LT(nic_mib(9000, 8), kMibPerGpu) << "within what set-up reserves";
}

TEST(Budget, TheLimitAppliesPerGpu) {
  const std::vector<NicNeed> nics = {{0, 9000, "a"}, {0, 9000, "a"}, {0, 9000, "b"}, {0, 9000}};
  EXPECT_EQ(process_limit_mib(nics, 200), 400U);
  EXPECT_EQ(process_limit_mib({}, 200), 200U);
  EXPECT_EQ(process_needs(nics, 200, k2Mib)[0].mib, 400U);
  EXPECT_EQ(unlimited_mib(nics), kDpdkBaseMib + 4 * nic_mib(9000));
}

TEST(Budget, NothingIsMissingWhenEnoughIsFree) {
  EXPECT_TRUE(missing_pages({{0, 1024}}, k2Mib, {{0, k2Mib, 512, 512, "/p"}}, {}).empty());
  EXPECT_TRUE(missing_pages({{0, 1024}}, k2Mib, {{-1, k2Mib, 512, 512, "/p"}}, {}).empty());
}

TEST(Budget, NamesTheNodeBothNumbersAndTheCommand) {
  const auto missing = missing_pages(
      {{0, 100}, {1, 2048}}, k2Mib,
      {{0, k2Mib, 512, 512, "/sys/node0/h"}, {1, k2Mib, 1024, 512, "/sys/node1/h"}}, {});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].node, 1);
  EXPECT_EQ(missing[0].needed, 1024U);
  EXPECT_EQ(missing[0].available, 512U);
  EXPECT_EQ(missing[0].text, "needs 1024 x 2 MiB hugepages on NUMA node 1, has 512 free of 1024");
  EXPECT_EQ(missing[0].command, "echo 1536 > /sys/node1/h/nr_hugepages");
}

TEST(Budget, ASizeTheKernelLacksNeedsTheCommandLine) {
  const auto missing = missing_pages({{0, 5120}}, k1Gib, {{0, k2Mib, 5000, 5000, "/p"}}, {});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_NE(missing[0].text.find("5 x 1 GiB"), std::string::npos) << missing[0].text;
  EXPECT_NE(missing[0].command.find("hugepagesz=1G hugepages=5"), std::string::npos);
}

TEST(Budget, AContainersLimitCountsAllNodesTogether) {
  const std::vector<NodePages> offered = {{0, k2Mib, 999, 999, "/a"}, {1, k2Mib, 999, 999, "/b"}};
  EXPECT_TRUE(missing_pages({{0, 64}, {1, 64}}, k2Mib, offered, 128ULL << 20).empty());
  const auto missing = missing_pages({{0, 64}, {1, 66}}, k2Mib, offered, 128ULL << 20);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].node, -1);
  EXPECT_EQ(missing[0].needed, 65U);
  EXPECT_EQ(missing[0].available, 64U);
  EXPECT_NE(missing[0].command.find("130 MiB of hugepages-2Mi"), std::string::npos)
      << missing[0].command;
}

TEST(Budget, ReportsEverythingAtOnce) {
  const auto missing =
      missing_pages({{0, 4}, {1, 4}}, k2Mib, {{0, k2Mib, 0, 0, "/a"}, {1, k2Mib, 0, 0, "/b"}}, 0);
  EXPECT_EQ(missing.size(), 3U);
}

}  // namespace
}  // namespace ztcp::hugepage
