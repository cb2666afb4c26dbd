// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/environment.h"

#include <initializer_list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::config {
namespace {

using testing::HasSubstr;

Environment read(std::initializer_list<const char*> variables) {
  std::vector<const char*> array(variables);
  array.push_back(nullptr);
  return read_environment(array.data());
}

TEST(Environment, HasDefaults) {
  const Environment environment = read({"HOME=/root", "NCCL_DEBUG=INFO", "ZTCP_PERF_SECRET=7"});
  EXPECT_EQ(environment.config_path, kDefaultPath);
  EXPECT_EQ(environment.on_error, OnError::kFail);
  EXPECT_EQ(environment.local_rank, -1);
  EXPECT_TRUE(environment.log_file.empty());
  EXPECT_TRUE(environment.problems.empty());
}

TEST(Environment, ReadsEachVariable) {
  const Environment environment = read({"ZTCP_CONFIG=/a", "ZTCP_LOG=/b", "ZTCP_ON_ERROR=fallback",
                                        "ZTCP_LOCAL_RANK=3", "ZTCP_DPDK_LOG=1"});
  EXPECT_EQ(environment.config_path, "/a");
  EXPECT_EQ(environment.log_file, "/b");
  EXPECT_EQ(environment.on_error, OnError::kFallback);
  EXPECT_EQ(environment.local_rank, 3);
  EXPECT_TRUE(environment.problems.empty());
}

TEST(Environment, ReadsTheTransportByName) {
  EXPECT_EQ(read({}).transport, TransportRequest::kConfigs);
  EXPECT_EQ(read({"ZTCP_TRANSPORT="}).transport, TransportRequest::kConfigs);
  EXPECT_EQ(read({"ZTCP_TRANSPORT=sockets"}).transport, TransportRequest::kSockets);
  EXPECT_EQ(read({"ZTCP_TRANSPORT=ustack"}).transport, TransportRequest::kUstack);
  EXPECT_EQ(read({"ZTCP_TRANSPORT=verbs"}).transport, TransportRequest::kVerbs);
  const Environment unknown = read({"ZTCP_TRANSPORT=Sockets"});
  EXPECT_EQ(unknown.transport, TransportRequest::kUnknown);
  EXPECT_EQ(unknown.transport_text, "Sockets");
  EXPECT_TRUE(unknown.problems.empty()) << "start-up refuses it, loudly";
}

TEST(Environment, KnowsWhetherZtcpChoosesChannels) {
  EXPECT_EQ(read({}).untuned_by, "");
  EXPECT_EQ(read({"ZTCP_TUNER=on"}).untuned_by, "");
  EXPECT_EQ(read({"ZTCP_TUNER=off"}).untuned_by, "ZTCP_TUNER=off");
  EXPECT_EQ(read({"NCCL_TUNER_PLUGIN=none"}).untuned_by, "NCCL_TUNER_PLUGIN=none");
  EXPECT_EQ(read({"NCCL_MIN_NCHANNELS=8"}).untuned_by, "NCCL_MIN_NCHANNELS=8");
  EXPECT_EQ(read({"NCCL_MIN_CTAS=8"}).untuned_by, "NCCL_MIN_CTAS=8");
  EXPECT_EQ(read({"NCCL_MIN_NCHANNELS=", "NCCL_MAX_NCHANNELS=8"}).untuned_by, "");
  EXPECT_EQ(read({"ZTCP_TUNER=0"}).untuned_by, "ZTCP_TUNER=0");
  EXPECT_EQ(read({"ZTCP_TUNER=1"}).untuned_by, "");
  EXPECT_EQ(read({"ZTCP_TUNER=1"}).tuner_fault, "");
  EXPECT_EQ(read({"ZTCP_TUNER="}).tuner_fault, "");
  const Environment wrong = read({"ZTCP_TUNER=no"});
  EXPECT_THAT(wrong.tuner_fault, HasSubstr("ZTCP_TUNER=no is neither on (1) nor off (0)"));
  EXPECT_TRUE(wrong.problems.empty()) << "start-up refuses it, loudly";
}

TEST(Environment, ReadsWhetherCollnetIsOnAndItsWire) {
  EXPECT_FALSE(read({}).collnet.has_value());
  EXPECT_FALSE(read({"ZTCP_COLLNET="}).collnet.has_value());
  EXPECT_EQ(read({"ZTCP_COLLNET=1"}).collnet, true);
  EXPECT_EQ(read({"ZTCP_COLLNET=on"}).collnet, true);
  EXPECT_EQ(read({"ZTCP_COLLNET=off"}).collnet, false);
  EXPECT_EQ(read({"ZTCP_COLLNET=0"}).collnet, false);
  EXPECT_EQ(read({"ZTCP_COLLNET_WIRE=bf16"}).collnet_wire, CollnetWire::kBf16);
  EXPECT_EQ(read({"ZTCP_COLLNET_WIRE=fp8"}).collnet_wire, CollnetWire::kFp8);
  EXPECT_EQ(read({"ZTCP_COLLNET_WIRE=f32"}).collnet_wire, CollnetWire::kF32);
  EXPECT_EQ(read({"ZTCP_COLLNET=1", "ZTCP_COLLNET_WIRE=bf16"}).collnet_fault, "");
  EXPECT_THAT(read({"ZTCP_COLLNET=yes"}).collnet_fault,
              HasSubstr("ZTCP_COLLNET=yes is neither on (1) nor off (0)"));
  EXPECT_THAT(read({"ZTCP_COLLNET_WIRE=fp4"}).collnet_fault,
              HasSubstr("ZTCP_COLLNET_WIRE=fp4 is neither f32, bf16 nor fp8"));
}

TEST(Environment, ReadsWhetherTheProcessHasAStatisticsPage) {
  EXPECT_TRUE(read({}).has_statistics_page);
  EXPECT_TRUE(read({"ZTCP_STATISTICS=1"}).has_statistics_page);
  EXPECT_FALSE(read({"ZTCP_STATISTICS=off"}).has_statistics_page);
  EXPECT_FALSE(read({"ZTCP_STATISTICS=0"}).has_statistics_page);
}

TEST(Environment, KnowsWhetherNcclIsToldToUseZtcp) {
  EXPECT_FALSE(read({"ZTCP_LOG=/b"}).ztcp_is_demanded);
  EXPECT_FALSE(read({"NCCL_NET="}).ztcp_is_demanded);
  EXPECT_FALSE(read({"NCCL_NET=Socket"}).ztcp_is_demanded);
  EXPECT_FALSE(read({"NCCL_NET_PLUGIN=ztcp"}).ztcp_is_demanded);
  EXPECT_TRUE(read({"NCCL_NET=ztcp"}).ztcp_is_demanded);
  EXPECT_TRUE(read({"NCCL_NET=ZTCP"}).ztcp_is_demanded);
}

TEST(Environment, KnowsWhetherNcclGivesReceiveHints) {
  EXPECT_TRUE(read({}).receives_are_told_apart);
  EXPECT_TRUE(read({"NCCL_NET_OPTIONAL_RECV_COMPLETION=1"}).receives_are_told_apart);
  EXPECT_FALSE(read({"NCCL_NET_OPTIONAL_RECV_COMPLETION=0"}).receives_are_told_apart);
  // NCCL's interpretation of the value is unknown, so any buffer may be polled.
  EXPECT_FALSE(read({"NCCL_NET_OPTIONAL_RECV_COMPLETION=on"}).receives_are_told_apart);
}

// NCCL derives the channels between two ranks from it, so both must have the same.
TEST(Environment, ReadsNcclsChannelsPerPeer) {
  EXPECT_EQ(read({}).channels_per_peer, 0);
  EXPECT_EQ(read({"NCCL_NCHANNELS_PER_NET_PEER=8"}).channels_per_peer, 8);
  EXPECT_EQ(read({"NCCL_NCHANNELS_PER_NET_PEER=0x10"}).channels_per_peer, 16);
  EXPECT_EQ(read({"NCCL_NCHANNELS_PER_NET_PEER=-2"}).channels_per_peer, 0);
  EXPECT_EQ(read({"NCCL_NCHANNELS_PER_NET_PEER=many"}).channels_per_peer, 0);
  EXPECT_EQ(read({"NCCL_NCHANNELS_PER_NET_PEER=99999999999999999999"}).channels_per_peer, 64);
}

TEST(Environment, EmptyMeansUnset) {
  const Environment environment = read({"ZTCP_CONFIG=", "ZTCP_LOCAL_RANK=", "ZTCP_ON_ERROR="});
  EXPECT_EQ(environment.config_path, kDefaultPath);
  EXPECT_EQ(environment.local_rank, -1);
  EXPECT_TRUE(environment.problems.empty());
}

struct WrongVariable {
  const char* name;
  const char* variable;
  const char* what;
};
class Wrong : public testing::TestWithParam<WrongVariable> {};

TEST_P(Wrong, WrongVariablesAreReported) {
  const Environment environment = read({GetParam().variable});
  ASSERT_EQ(environment.problems.size(), 1U);
  EXPECT_THAT(to_string(environment.problems[0]), HasSubstr(GetParam().what));
  EXPECT_FALSE(environment.problems[0].mend.empty());
  EXPECT_EQ(environment.on_error, OnError::kFail);
  EXPECT_EQ(environment.local_rank, -1);
}

INSTANTIATE_TEST_SUITE_P(
    Variable, Wrong,
    testing::Values(
        WrongVariable{"misspelt", "ZTCP_CONF=x", "did you mean ZTCP_CONFIG?"},
        WrongVariable{"unlike_any", "ZTCP_FROBNICATE=1", "ZTCP_FROBNICATE: unknown variable;"},
        WrongVariable{"on_error", "ZTCP_ON_ERROR=soft", "\"soft\" is neither fail nor fallback"},
        WrongVariable{"statistics", "ZTCP_STATISTICS=no", "\"no\" is neither on (1) nor off (0)"},
        WrongVariable{"rank_word", "ZTCP_LOCAL_RANK=one", "\"one\" is not a number"},
        WrongVariable{"rank_negative", "ZTCP_LOCAL_RANK=-2", "\"-2\" is not a number"},
        WrongVariable{"rank_trailing", "ZTCP_LOCAL_RANK=1x", "\"1x\" is not a number"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace ztcp::config
