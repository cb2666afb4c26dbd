// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/nccl_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::tools {
namespace {

using testing::ElementsAre;

NcclVariables read(Variables environment, const Variables& files) {
  return read_nccl_variables(std::move(environment), [&](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? std::string() : found->second;
  });
}

TEST(NcclVariables, AnEarlierSourceIsNeverOverridden) {
  const auto variables =
      read({{"HOME", "/home/me"}, {"A", "1"}},
           {{"/home/me/.nccl.conf", "A=2\nB=2\n"}, {"/etc/nccl.conf", "B=3\nC=3"}});
  EXPECT_EQ(variables.value_of("A"), "1");
  EXPECT_EQ(variables.value_of("B"), "2");
  EXPECT_EQ(variables.value_of("C"), "3");
  EXPECT_EQ(variables.value_of("D"), "");
  EXPECT_EQ(variables.place_of("A"), "A");
  EXPECT_EQ(variables.place_of("C"), "C in /etc/nccl.conf");
}

TEST(NcclVariables, CommentsAndLinesWithoutAValueAreLeftOut) {
  const auto variables = read({}, {{"/etc/nccl.conf", "#A=1\nB\n\nC=\n"}});
  EXPECT_EQ(variables.values, (Variables{{"C", ""}}));
}

TEST(NcclVariables, AVariableNamesAnotherFileOfTheUsers) {
  EXPECT_THAT(nccl_files({{"HOME", "/home/me"}, {"NCCL_CONF_FILE", "/job/nccl.conf"}}),
              ElementsAre("/job/nccl.conf", "/etc/nccl.conf"));
}

}  // namespace
}  // namespace ztcp::tools
