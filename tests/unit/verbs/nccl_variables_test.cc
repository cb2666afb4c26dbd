// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/nccl_variables.h"

#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>

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
  EXPECT_EQ(variables.timeout, 20) << "NCCL's since 2.23";
  EXPECT_FALSE(variables.is_split) << "NCCL's";
  EXPECT_TRUE(variables.has_ece);
  EXPECT_EQ(variables.gid_wished_by, "");
  EXPECT_TRUE(variables.ignored.empty());
  EXPECT_TRUE(variables.unheeded.empty());
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

  const NcclVariables more = read({{"NCCL_IB_FIFO_TC", "104"},
                                   {"NCCL_IB_SPLIT_DATA_ON_QPS", "1"},
                                   {"NCCL_IB_ECE_ENABLE", "0"},
                                   {"NCCL_IB_ROUTABLE_FLID_GID_INDEX", "2"},
                                   {"NCCL_IB_DEVICE_PCI_ORDER", "0"},
                                   {"NCCL_IB_QUERY_PORT_SPEED", "0"},
                                   {"NCCL_IBVERBS_LIB", "/opt/libibverbs.so"},
                                   {"NCCL_IB_ADDR_FAMILY", "AF_INET6"},
                                   {"NCCL_IB_ADDR_RANGE", "2001:db8::/32"},
                                   {"NCCL_IB_ROCE_VERSION_NUM", "1"}});
  EXPECT_EQ(more.slot_traffic_class, 104);
  EXPECT_TRUE(more.is_split);
  EXPECT_FALSE(more.has_ece);
  EXPECT_EQ(more.gid_wish.flid_index, 2);
  EXPECT_FALSE(more.is_pci_ordered);
  EXPECT_FALSE(more.asks_port_speed);
  EXPECT_EQ(more.library, "/opt/libibverbs.so");
  EXPECT_EQ(more.gid_wish.family, GidWish::Family::kIpv6);
  EXPECT_EQ(more.gid_wish.range, parse_ip_prefix("2001:db8::/32"));
  EXPECT_EQ(more.gid_wish.version, GidType::kRoceV1);
  EXPECT_EQ(more.gid_wished_by,
            "NCCL_IB_ADDR_FAMILY=AF_INET6, NCCL_IB_ADDR_RANGE=2001:db8::/32, "
            "NCCL_IB_ROCE_VERSION_NUM=1");
  EXPECT_TRUE(more.ignored.empty() && more.unheeded.empty());
}

TEST(NcclVariables, NumbersHaveTheBaseThatTheirBeginningSays) {
  EXPECT_EQ(read({{"NCCL_IB_TC", "0x6a"}}).traffic_class, 0x6a);
  EXPECT_EQ(read({{"NCCL_IB_TC", "0152"}}).traffic_class, 0152);
  EXPECT_EQ(read({{"NCCL_IB_PKEY", "0x2"}}).pkey_index, 2);
  EXPECT_EQ(read({{"NCCL_IB_SL", " 3 "}}).service_level, 3);
  EXPECT_EQ(read({{"NCCL_IB_TC", "0x"}}).ignored.size(), 1U);
  EXPECT_EQ(read({{"NCCL_IB_TC", "99999999999999999999"}}).ignored.size(), 1U);
}

TEST(NcclVariables, SwitchesAreOnForAnyNumberButZeroAsToNccl) {
  EXPECT_TRUE(read({{"NCCL_IB_DISABLE", "2"}}).is_disabled);
  EXPECT_EQ(read({{"NCCL_IB_ADAPTIVE_ROUTING", "-2"}}).adaptive_routing, -1);
}

TEST(NcclVariables, VariableWithoutEffectIsNamedUnlessItChangesNothing) {
  const auto unheeded = [](const char* name, const char* value) {
    return read({{name, value}}).unheeded;
  };
  EXPECT_THAT(unheeded("NCCL_IB_OOO_RQ", "1"),
              testing::ElementsAre("NCCL_IB_OOO_RQ=1: receives are taken in order"));
  EXPECT_THAT(unheeded("NCCL_IB_DATA_DIRECT", "1"), testing::SizeIs(1));
  EXPECT_THAT(unheeded("NCCL_IB_DATA_DIRECT", "0"), testing::IsEmpty());
  EXPECT_THAT(unheeded("NCCL_IB_USE_INLINE", "1"), testing::IsEmpty());
  EXPECT_THAT(unheeded("NCCL_IB_USE_INLINE", "0"), testing::SizeIs(1));
  EXPECT_THAT(unheeded("NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", "-2"), testing::IsEmpty());
  EXPECT_THAT(unheeded("NCCL_IB_MERGE_VFS", "many"), testing::SizeIs(1));
}

// From src/transport/net_ib and src/misc/ibv* of NCCL 2.30: a new release may add some.
TEST(NcclVariables, AllThatNcclsOwnNetworkReadsAreKnown) {
  const auto known = nccl_variable_names();
  for (const char* const name : {"NCCL_GDR_FLUSH_DISABLE",
                                 "NCCL_IBVERBS_LIB",
                                 "NCCL_IB_ADAPTIVE_ROUTING",
                                 "NCCL_IB_ADDR_FAMILY",
                                 "NCCL_IB_ADDR_RANGE",
                                 "NCCL_IB_AR_THRESHOLD",
                                 "NCCL_IB_DATA_DIRECT",
                                 "NCCL_IB_DEVICE_PCI_ORDER",
                                 "NCCL_IB_DISABLE",
                                 "NCCL_IB_ECE_ENABLE",
                                 "NCCL_IB_FIFO_TC",
                                 "NCCL_IB_GID_INDEX",
                                 "NCCL_IB_HCA",
                                 "NCCL_IB_MERGE_NICS",
                                 "NCCL_IB_MERGE_VFS",
                                 "NCCL_IB_MQP_RETRY_ALL",
                                 "NCCL_IB_MQP_RETRY_CNT",
                                 "NCCL_IB_MQP_RETRY_SLEEP_MSEC",
                                 "NCCL_IB_OOO_RQ",
                                 "NCCL_IB_PCI_RELAXED_ORDERING",
                                 "NCCL_IB_PKEY",
                                 "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS",
                                 "NCCL_IB_QPS_PER_CONNECTION",
                                 "NCCL_IB_QUERY_PORT_SPEED",
                                 "NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME",
                                 "NCCL_IB_RESILIENCY_PORT_FAILOVER",
                                 "NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS",
                                 "NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX",
                                 "NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY",
                                 "NCCL_IB_RETRY_CNT",
                                 "NCCL_IB_RETURN_ASYNC_EVENTS",
                                 "NCCL_IB_ROCE_VERSION_NUM",
                                 "NCCL_IB_ROUTABLE_FLID_GID_INDEX",
                                 "NCCL_IB_SL",
                                 "NCCL_IB_SPLIT_DATA_ON_QPS",
                                 "NCCL_IB_SUBNET_AWARE_ROUTING",
                                 "NCCL_IB_SUBNET_PREFIX_LEN",
                                 "NCCL_IB_TC",
                                 "NCCL_IB_TIMEOUT",
                                 "NCCL_IB_USE_INLINE",
                                 "NCCL_IB_WARN_RAIL_LOCAL"})
    EXPECT_THAT(known, testing::Contains(name));
}

TEST(NcclVariables, EachIsInItsPage) {
  std::ifstream file(ZTCP_NCCL_VARIABLES);
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  ASSERT_NE(text.find("| variable | key of the NIC |"), std::string::npos);
  for (const std::string& name : nccl_variable_names())
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
}

TEST(NcclVariables, InvalidNumberIsNamedAndIgnored) {
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
  // Rail and plane of NCCL 2.30 behind the port.
  EXPECT_FALSE(HcaFilter("=mlx5_0:1:0:2").fits("mlx5_0", 2));
  EXPECT_TRUE(HcaFilter("=mlx5_0:1:0:2").fits("mlx5_0", 1));
  EXPECT_TRUE(HcaFilter("=mlx5_0::0:2").fits("mlx5_0", 2));
  EXPECT_FALSE(HcaFilter("=mlx5_0:x").fits("mlx5_0", 1));
  EXPECT_FALSE(HcaFilter("^=mlx5_1").fits("mlx5_1", 1));
  EXPECT_TRUE(HcaFilter("^=mlx5_1").fits("mlx5_10", 1));
}

TEST(HcaFilter, ADeviceFitsWhereAPortOfItMay) {
  EXPECT_TRUE(HcaFilter("").fits("mlx5_0"));
  EXPECT_TRUE(HcaFilter("=mlx5_0:2").fits("mlx5_0"));
  EXPECT_FALSE(HcaFilter("=mlx5_0:2").fits("mlx5_1"));
  EXPECT_TRUE(HcaFilter("^mlx5_0:2").fits("mlx5_0"));
  EXPECT_FALSE(HcaFilter("^mlx5_0").fits("mlx5_0"));
}

}  // namespace
}  // namespace ztcp::verbs
