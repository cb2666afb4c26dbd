// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/nccl_variables.h"

#include <map>

#include <gtest/gtest.h>

namespace ztcp::verbs {
namespace {

NcclVariables read(const std::map<std::string, std::string>& environment) {
  return read_nccl_variables([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(NcclVariables, NothingSaidIsNothingChanged) {
  const NcclVariables variables = read({});
  EXPECT_FALSE(variables.is_disabled);
  EXPECT_FALSE(variables.devices.is_set());
  EXPECT_TRUE(variables.devices.fits("mlx5_0", 1));
  EXPECT_EQ(variables.gid_index, -1);
  EXPECT_EQ(variables.queue_pairs, 1U);
  EXPECT_TRUE(variables.is_relaxed);
  EXPECT_FALSE(variables.is_flush_disabled);
  EXPECT_TRUE(variables.ignored.empty());
}

TEST(NcclVariables, TakesNcclsVariables) {
  const NcclVariables variables = read({{"NCCL_IB_DISABLE", "1"},
                                        {"NCCL_GDR_FLUSH_DISABLE", "1"},
                                        {"NCCL_IB_GID_INDEX", "3"},
                                        {"NCCL_IB_TIMEOUT", "22"},
                                        {"NCCL_IB_RETRY_CNT", "5"},
                                        {"NCCL_IB_TC", "106"},
                                        {"NCCL_IB_SL", "3"},
                                        {"NCCL_IB_PKEY", "2"},
                                        {"NCCL_IB_QPS_PER_CONNECTION", "4"},
                                        {"NCCL_IB_PCI_RELAXED_ORDERING", "0"},
                                        {"NCCL_IB_ADAPTIVE_ROUTING", "0"},
                                        {"NCCL_IB_AR_THRESHOLD", "65536"}});
  EXPECT_TRUE(variables.is_disabled);
  EXPECT_TRUE(variables.is_flush_disabled);
  EXPECT_EQ(variables.gid_index, 3);
  EXPECT_EQ(variables.timeout, 22);
  EXPECT_EQ(variables.retries, 5);
  EXPECT_EQ(variables.traffic_class, 106);
  EXPECT_EQ(variables.service_level, 3);
  EXPECT_EQ(variables.pkey_index, 2);
  EXPECT_EQ(variables.queue_pairs, 4U);
  EXPECT_FALSE(variables.is_relaxed);
  EXPECT_EQ(variables.adaptive_routing, 0);
  EXPECT_EQ(variables.adaptive_threshold, 65536);
}

TEST(NcclVariables, WhatIsNoSuchNumberIsNamedAndIgnored) {
  const NcclVariables variables = read({{"NCCL_IB_TIMEOUT", "40"}, {"NCCL_IB_TC", "fast"}});
  EXPECT_EQ(variables.timeout, NcclVariables().timeout);
  EXPECT_EQ(variables.ignored, (std::vector<std::string>{"NCCL_IB_TIMEOUT=40", "NCCL_IB_TC=fast"}));
  EXPECT_TRUE(read({{"NCCL_IB_TC", "-1"}, {"NCCL_IB_GID_INDEX", ""}}).ignored.empty())
      << "NCCL's own words for: as you like";
}

TEST(NcclVariables, NeverMoreQueuePairsThanThereAreInAConnection) {
  EXPECT_EQ(read({{"NCCL_IB_QPS_PER_CONNECTION", "64"}}).queue_pairs, 8U);
  EXPECT_EQ(read({{"NCCL_IB_QPS_PER_CONNECTION", "0"}}).queue_pairs, 1U);
}

TEST(HcaFilter, ByBeginningExactlyAndExcluding) {
  const HcaFilter any("mlx5_1,bnxt");
  EXPECT_TRUE(any.fits("mlx5_1", 1));
  EXPECT_TRUE(any.fits("mlx5_10", 1)) << "by its beginning, as NCCL does";
  EXPECT_TRUE(any.fits("bnxt_re0", 2));
  EXPECT_FALSE(any.fits("mlx5_2", 1));
  const HcaFilter exact("=mlx5_1:2");
  EXPECT_TRUE(exact.fits("mlx5_1", 2));
  EXPECT_FALSE(exact.fits("mlx5_1", 1));
  EXPECT_FALSE(exact.fits("mlx5_10", 2));
  const HcaFilter others("^mlx5_3,mlx5_4:1");
  EXPECT_FALSE(others.fits("mlx5_3", 1));
  EXPECT_FALSE(others.fits("mlx5_4", 1));
  EXPECT_TRUE(others.fits("mlx5_4", 2));
  EXPECT_TRUE(others.fits("mlx5_0", 1));
  EXPECT_FALSE(HcaFilter("^=mlx5_1").fits("mlx5_1", 1));
  EXPECT_TRUE(HcaFilter("^=mlx5_1").fits("mlx5_10", 1));
}

}  // namespace
}  // namespace ztcp::verbs
