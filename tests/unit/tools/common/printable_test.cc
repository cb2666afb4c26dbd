// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/printable.h"

#include <gtest/gtest.h>

namespace ztcp::tools {
namespace {

TEST(Printable, PlainTextStays) {
  EXPECT_EQ(printable("rank 1 (gpu-01 pid 7)"), "rank 1 (gpu-01 pid 7)");
}

TEST(Printable, BytesThatControlATerminalAreReplaced) {
  EXPECT_EQ(printable("\x1b]0;owned\x07\nztcp_perf: all is well\x7f\xc2\x9b"),
            "?]0;owned??ztcp_perf: all is well???");
  using namespace std::string_view_literals;
  EXPECT_EQ(printable("a\0b"sv), "a?b");
}

TEST(Printable, LongTextIsCut) {
  EXPECT_EQ(printable(std::string(5000, 'x')), std::string(1024, 'x') + "...");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("abc", 3), "abc");
}

}  // namespace
}  // namespace ztcp::tools
