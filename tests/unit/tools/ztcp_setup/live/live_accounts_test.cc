// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Accounts that exist on every Linux.
#include <gtest/gtest.h>

#include "tools/ztcp_setup/live/live_host.h"

namespace ztcp::setup {
namespace {

TEST(LiveAccounts, NamesAndNumbersOfRoot) {
  LiveHost host(LiveHost::Purpose::kInspect);
  EXPECT_EQ(host.user_id("root"), 0U);
  EXPECT_EQ(host.group_id("root"), 0U);
  EXPECT_EQ(host.user_name(0), "root");
  EXPECT_EQ(host.group_name(0), "root");
}

TEST(LiveAccounts, UnknownAccountsAreAbsent) {
  LiveHost host(LiveHost::Purpose::kInspect);
  EXPECT_EQ(host.user_id("nobody-has-this-name"), std::nullopt);
  EXPECT_EQ(host.group_id("nobody-has-this-name"), std::nullopt);
  EXPECT_EQ(host.user_name(4'000'000'000U), "4000000000");
  EXPECT_EQ(host.group_name(4'000'000'000U), "4000000000");
}

}  // namespace
}  // namespace ztcp::setup
