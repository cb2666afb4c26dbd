// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/keys.h"

#include <gtest/gtest.h>

namespace ztcp::stat {
namespace {

TEST(Keys, QuitAndLookNow) {
  Choice choice;
  EXPECT_EQ(press("q", choice, 10), Action::kQuit);
  EXPECT_EQ(press(" ", choice, 10), Action::kLook);
  EXPECT_EQ(press("", choice, 10), Action::kNone);
  EXPECT_EQ(press("x", choice, 10), Action::kNone);
}

TEST(Keys, SortsByLetterOrInTurn) {
  Choice choice;
  EXPECT_EQ(press("r", choice, 10), Action::kRedraw);
  EXPECT_EQ(choice.sort, Sort::kRate);
  press("ls", choice, 10);
  EXPECT_EQ(choice.sort, Sort::kWait);
  press("ss", choice, 10);
  EXPECT_EQ(choice.sort, Sort::kWorst);
}

TEST(Keys, FilterIsTypedUntilEnter) {
  Choice choice;
  press("/gpq", choice, 10);
  EXPECT_TRUE(choice.is_typing);
  press("\177u-07\r", choice, 10);
  EXPECT_EQ(choice.filter, "gpu-07");
  EXPECT_FALSE(choice.is_typing);
  EXPECT_EQ(press("q", choice, 10), Action::kQuit);
  press("\033", choice, 10);
  EXPECT_EQ(choice.filter, "");
}

TEST(Keys, EscapeEndsTheTyping) {
  Choice choice;
  press("/abc", choice, 10);
  press("\033", choice, 10);
  EXPECT_EQ(choice.filter, "");
  EXPECT_FALSE(choice.is_typing);
}

TEST(Keys, FilterIsBounded) {
  Choice choice;
  press("/" + std::string(1000, 'a'), choice, 10);
  EXPECT_LE(choice.filter.size(), 64u);
}

TEST(Keys, ArrowsAndPagesScroll) {
  Choice choice;
  press("\033[B\033[B", choice, 10);
  EXPECT_EQ(choice.first_row, 2u);
  press("\033[6~", choice, 10);
  EXPECT_EQ(choice.first_row, 12u);
  press("\033[5~\033OA", choice, 10);
  EXPECT_EQ(choice.first_row, 1u);
  press("\033[A\033[A\033[A", choice, 10);
  EXPECT_EQ(choice.first_row, 0u);
}

TEST(Keys, CutSequenceIsHarmless) {
  Choice choice;
  for (const char* input : {"\033[", "\033[1", "\033[1;5", "\033O"}) press(input, choice, 10);
  EXPECT_EQ(choice.first_row, 0u);
}

}  // namespace
}  // namespace ztcp::stat
