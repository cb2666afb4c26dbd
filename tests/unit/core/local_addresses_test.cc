// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/local_addresses.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(LocalAddresses, AreTheKernels) {
  const auto all = local_addresses();
  for (const LocalAddress& one : all) {
    EXPECT_FALSE(one.interface.empty());
    EXPECT_TRUE(one.is_up || !one.is_running) << one.interface;
    EXPECT_LE(one.prefix.length, one.prefix.address.is_v4() ? 32 : 128);
  }
  const auto loopback = std::find_if(all.begin(), all.end(), [](const LocalAddress& one) {
    return one.is_loopback && one.prefix.address.is_v4();
  });
  if (loopback == all.end()) return;  // A namespace may have none.
  EXPECT_EQ(to_string(loopback->prefix), "127.0.0.1/8");
  EXPECT_EQ(loopback->interface, "lo");
  EXPECT_GT(loopback->index, 0U);
}

}  // namespace
}  // namespace ztcp
