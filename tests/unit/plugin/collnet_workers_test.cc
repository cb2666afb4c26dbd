// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_workers.h"

#include <numeric>

#include <gtest/gtest.h>

namespace ztcp::plugin {
namespace {

config::CpuShare share_of(std::size_t cpus, std::size_t ranks, std::size_t quota = 0) {
  config::CpuShare share;
  share.allowed.resize(cpus);
  std::iota(share.allowed.begin(), share.allowed.end(), 0U);
  share.common = cpus;
  share.quota = quota;
  share.ranks.count = ranks;
  return share;
}

TEST(CollnetWorkers, FewCpus_HaveNone) {
  EXPECT_EQ(collnet_workers(share_of(0, 1)), 0U);
  EXPECT_EQ(collnet_workers(share_of(2, 2)), 0U);
  EXPECT_EQ(collnet_workers(share_of(16, 4)), 0U);
  EXPECT_EQ(collnet_workers(share_of(64, 1, 4)), 0U);
}

TEST(CollnetWorkers, SpareCpusOfARank_HaveOneEachUpToThree) {
  EXPECT_EQ(collnet_workers(share_of(10, 2)), 1U);
  EXPECT_EQ(collnet_workers(share_of(24, 4)), 2U);
  EXPECT_EQ(collnet_workers(share_of(16, 2)), 3U);
  EXPECT_EQ(collnet_workers(share_of(96, 1)), 3U);
}

TEST(CollnetWorkers, AMaskOfTheRanksOwn_CountsWhole) {
  config::CpuShare share = share_of(8, 4);
  share.common = 32;
  EXPECT_EQ(collnet_workers(share), 3U);
}

}  // namespace
}  // namespace ztcp::plugin
