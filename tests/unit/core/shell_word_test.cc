// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/shell_word.h"

#include <array>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(ShellWord, PlainWordsAreNotQuoted) {
  EXPECT_EQ(shell_word("/usr/local/a-b_c.conf"), "/usr/local/a-b_c.conf");
  EXPECT_EQ(shell_word("--config=/x"), "--config=/x");
}

TEST(ShellWord, AShellReadsTheQuotedWordUnchanged) {
  for (const std::string word :
       {"", "my folder", "a'b", "$HOME", "`id`", "a;b", "*", "~x", "a\"b", "\\n", "(x)", "#x"}) {
    const std::string line = "printf %s " + shell_word(word);
    std::FILE* shell = popen(line.c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::array<char, 64> text{};
    const std::size_t size = std::fread(text.data(), 1, text.size(), shell);
    EXPECT_EQ(pclose(shell), 0) << line;
    EXPECT_EQ(std::string(text.data(), size), word) << line;
  }
}

}  // namespace
}  // namespace ztcp
