// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/host_name.h"

#include <string>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(HostNameTest, KeepsPrintableCharactersAlone) {
  EXPECT_EQ(HostName::of("gpu-07.example").view(), "gpu-07.example");
  EXPECT_EQ(HostName::of("a\033[1m b\n\xff").view(), "a?[1m?b??");
  EXPECT_EQ(HostName::of(std::string("ab\0cd", 5)).view(), "ab");
  EXPECT_TRUE(HostName::of("").is_empty());
}

TEST(HostNameTest, CutsLongNames) {
  EXPECT_EQ(HostName::of(std::string(100, 'x')).view(), std::string(63, 'x'));
}

TEST(HostNameTest, ThisHostHasOne) { EXPECT_FALSE(own_host_name().is_empty()); }

}  // namespace
}  // namespace ztcp
