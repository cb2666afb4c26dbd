// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/why.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

TEST(Why, HealthyJobInALine) {
  EXPECT_EQ(text_of({}, 2, 2.5, false),
            "healthy: no fault is seen (2 processes, watched for 2.5 s)\n");
}

TEST(Why, NotesDoNotMakeAJobSick) {
  const Findings notes = {{Severity::kNote, Rule::kMtu, "ztcp1", "has an MTU of 1500", "", 0}};
  EXPECT_EQ(text_of(notes, 1, 0, false),
            "healthy: no fault is seen (1 process)\nnote: ztcp1 has an MTU of 1500\n");
}

TEST(Why, FaultWithItsCommand) {
  const Findings faults = {
      {Severity::kSevere, Rule::kStopped, "process 7", "is stopped", "kill -CONT 7", 0}};
  EXPECT_EQ(text_of(faults, 1, 0, false), "severe: process 7 is stopped\n    kill -CONT 7\n");
  EXPECT_EQ(text_of(faults, 1, 0, true),
            "\033[1;31msevere\033[0m: \033[1mprocess 7\033[0m is stopped\n    kill -CONT 7\n");
}

}  // namespace
}  // namespace ztcp::stat
