// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/nccl_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::perf::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NcclChoice choice_of(tools::Variables values, tools::Variables origins = {}) {
  return nccl_choice({.values = std::move(values), .origins = std::move(origins)});
}

TEST(NcclChoice, WithoutVariablesNcclOpensThePluginOfTheLibraryPath) {
  const NcclChoice choice = choice_of({});
  EXPECT_THAT(choice.libraries, ElementsAre("libnccl-net.so"));
  EXPECT_EQ(choice.variables, "NCCL_NET_PLUGIN not set, NCCL_NET not set");
  EXPECT_EQ(choice.refusal, "");
}

TEST(NcclChoice, APathIsOpenedAsItIsAndANameAlsoAsPartOfAFileName) {
  EXPECT_THAT(choice_of({{"NCCL_NET_PLUGIN", "/opt/libnccl-net.so"}}).libraries,
              ElementsAre("/opt/libnccl-net.so"));
  EXPECT_THAT(choice_of({{"NCCL_NET_PLUGIN", "ztcp"}}).libraries,
              ElementsAre("ztcp", "libnccl-net-ztcp.so"));
}

TEST(NcclChoice, TheFirstOfSeveralPluginsCounts) {
  EXPECT_THAT(choice_of({{"NCCL_NET_PLUGIN", "/a.so,/b.so"}}).libraries, ElementsAre("/a.so"));
}

TEST(NcclChoice, NoPluginIsRefusedWithTheCommandThatMendsIt) {
  const NcclChoice choice = choice_of({{"NCCL_NET_PLUGIN", "none"}});
  EXPECT_THAT(choice.libraries, IsEmpty());
  EXPECT_EQ(choice.refusal, "NCCL_NET_PLUGIN=none, so NCCL loads no plugin");
  EXPECT_EQ(choice.mend, "unset NCCL_NET_PLUGIN");
}

TEST(NcclChoice, AnotherNetworkIsRefusedAndItsFileIsNamed) {
  const NcclChoice choice = choice_of({{"NCCL_NET", "IB"}}, {{"NCCL_NET", "/etc/nccl.conf"}});
  EXPECT_EQ(choice.refusal, "NCCL_NET=IB chooses another network");
  EXPECT_EQ(choice.mend, "remove NCCL_NET from /etc/nccl.conf");
  EXPECT_EQ(choice.variables, "NCCL_NET_PLUGIN not set, NCCL_NET=IB (in /etc/nccl.conf)");
}

TEST(NcclChoice, TheNetworksNameIsComparedWithoutCase) {
  EXPECT_EQ(choice_of({{"NCCL_NET", "ZTCP"}}).refusal, "");
}

}  // namespace
}  // namespace ztcp::perf::job
