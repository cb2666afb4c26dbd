// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/kernel_release.h"

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(KernelRelease, BeginsWithItsVersion) {
  EXPECT_EQ(kernel_version("5.15.0-105-generic"), (KernelVersion{5, 15}));
  EXPECT_EQ(kernel_version("6.1"), (KernelVersion{6, 1}));
  EXPECT_EQ(kernel_version("4.18.0-513.el8.x86_64"), (KernelVersion{4, 18}));
}

TEST(KernelRelease, TextWithoutAVersionIsOlderThanAnyRelease) {
  for (const char* text : {"", "6", "6.", "x.1", ".5", "6-1", "99999999999.1"})
    EXPECT_EQ(kernel_version(text), KernelVersion{}) << text;
}

TEST(KernelRelease, NumbersAreCompared) {
  EXPECT_LT(kernel_version("5.4"), kernel_version("5.12"));
  EXPECT_LT(kernel_version("5.19"), kernel_version("6.0"));
}

}  // namespace
}  // namespace ztcp
