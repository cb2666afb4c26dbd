// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/env/profile.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::env {
namespace {

using testing::HasSubstr;

constexpr const char* kConfig = "/usr/local/tfabric/tools/config/ztcp.conf";
constexpr const char* kPlugin = "/lib/here/libnccl-net.so";

struct Host {
  std::map<std::string, std::string> variables;
  std::set<std::string> files{kPlugin, kConfig};

  Profile choose() const {
    return env::choose({.variable = [this](const char* name) -> const char* {
                          const auto at = variables.find(name);
                          return at == variables.end() ? nullptr : at->second.c_str();
                        },
                        .is_file = [this](const std::string& path) { return files.contains(path); },
                        .folder = "/lib/here"});
  }
};

TEST(EnvProfile, NamesThePluginBesideItWhereAConfigExists) {
  const Profile profile = Host{}.choose();
  EXPECT_STREQ(profile.find("NCCL_NET"), "ztcp");
  EXPECT_STREQ(profile.find("NCCL_NET_PLUGIN"), kPlugin);
  EXPECT_EQ(profile.find("NCCL_DEBUG"), nullptr);
  EXPECT_THAT(profile.text, HasSubstr(std::string(kConfig) + " exists"));
}

TEST(EnvProfile, TakesTheTransportOfTheEnvironmentForAConfig) {
  Host host;
  host.files.erase(kConfig);
  host.variables["ZTCP_TRANSPORT"] = "sockets";
  EXPECT_STREQ(host.choose().find("NCCL_NET"), "ztcp");
}

TEST(EnvProfile, ReadsTheConfigThatTheUserNames) {
  Host host;
  host.variables["ZTCP_CONFIG"] = "/mine.conf";
  EXPECT_THAT(host.choose().text, HasSubstr("there is no /mine.conf"));
  host.files.insert("/mine.conf");
  EXPECT_STREQ(host.choose().find("NCCL_NET"), "ztcp");
}

TEST(EnvProfile, LeavesAHostAloneOnWhichThePluginWouldNotStart) {
  Host host;
  host.files.erase(kConfig);
  const Profile profile = host.choose();
  EXPECT_EQ(profile.find("NCCL_NET"), nullptr);
  EXPECT_EQ(profile.find("NCCL_NET_PLUGIN"), nullptr);
  EXPECT_THAT(profile.text, HasSubstr("run ztcp_setup"));
}

TEST(EnvProfile, LeavesAnotherNetworkAlone) {
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"NCCL_NET", "IB"}, {"NCCL_NET_PLUGIN", "none"}, {"NCCL_NET_PLUGIN", "aws-ofi"}}) {
    Host host;
    host.variables[name] = value;
    const Profile profile = host.choose();
    EXPECT_FALSE(profile.is_active);
    EXPECT_THAT(profile.text, HasSubstr(name + "=" + value));
  }
}

TEST(EnvProfile, KeepsThePathThatTheUserGives) {
  Host host;
  host.variables["NCCL_NET_PLUGIN"] = "/mine/libnccl-net.so";
  host.variables["NCCL_NET"] = "ZTCP";  // NCCL compares without case.
  const Profile profile = host.choose();
  EXPECT_TRUE(profile.is_active);
  EXPECT_EQ(profile.find("NCCL_NET_PLUGIN"), nullptr);
}

TEST(EnvProfile, NamesAMissingPlugin) {
  Host host;
  host.files.erase(kPlugin);
  EXPECT_THAT(host.choose().text, HasSubstr(std::string("there is no ") + kPlugin));
}

}  // namespace
}  // namespace ztcp::env
