// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/remote_command.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::perf::probe {
namespace {

using testing::Contains;
using testing::Each;
using testing::Not;
using testing::StartsWith;

TEST(ProbeRemoteCommand, PassesThePluginsVariablesAndNoSecret) {
  EXPECT_TRUE(is_for_plugin("ZTCP_CONFIG"));
  EXPECT_TRUE(is_for_plugin("NCCL_SOCKET_IFNAME"));
  EXPECT_FALSE(is_for_plugin("ZTCP_PERF_SECRET"));
  EXPECT_FALSE(is_for_plugin("ZTCP_LOCAL_RANK"));
  EXPECT_FALSE(is_for_plugin("PATH"));
  setenv("ZTCP_TRANSPORT", "sockets", 1);
  setenv("ZTCP_PERF_SECRET", "0123456789abcdef", 1);
  const auto words = agent_command({}, "/usr/bin/ztcp_perf");
  unsetenv("ZTCP_TRANSPORT");
  unsetenv("ZTCP_PERF_SECRET");
  EXPECT_EQ(words.front(), "env");
  EXPECT_THAT(words, Contains("ZTCP_TRANSPORT=sockets"));
  EXPECT_THAT(words, Each(Not(StartsWith("ZTCP_PERF_SECRET"))));
}

TEST(ProbeRemoteCommand, PassesTheOptionsOfThePlugin) {
  ProbeOptions options;
  options.plugin = "/opt/a plugin.so";
  options.config = "c.conf";
  options.abi = 9;
  options.devices = {0, 2};
  options.log = LogLevel::kInfo;
  const std::string command = shell_command(agent_command(options, "/usr/bin/ztcp_perf"));
  EXPECT_TRUE(
      command.ends_with("/usr/bin/ztcp_perf probe --agent --plugin '/opt/a plugin.so' "
                        "--config c.conf --abi 9 --device 0 --device 2 --log info"))
      << command;
}

TEST(ProbeRemoteCommand, WordsStayWordsInAShell) {
  EXPECT_EQ(shell_command({"a b", "$(reboot)", "c"}), R"('a b' '$(reboot)' c)");
}

}  // namespace
}  // namespace ztcp::perf::probe
