// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/shared_budget.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

TEST(SharedBudget, CountsSessionsUpAndDown) {
  SharedBudget budget(2);
  budget.add();
  EXPECT_EQ(budget.left(), 1U);
  budget.add();
  budget.add();
  EXPECT_EQ(budget.left(), 0U) << "a lane may have checked before another added";
  budget.remove(3);
  EXPECT_EQ(budget.left(), budget.most());
}

}  // namespace
}  // namespace ztcp::comms
