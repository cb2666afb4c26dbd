// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/syntax_text.h"

#include "tests/unit/config/file/config_texts.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::Not;

Problem only_problem(const std::string& text) {
  const auto result = parse(text, "ztcp.conf");
  EXPECT_EQ(result.problems.size(), 1U) << text;
  return result.problems.empty() ? Problem{} : result.problems.front();
}

struct SyntaxCase {
  const char* name;
  std::string text;
  const char* where;
  const char* what;
  const char* mend;
  friend void PrintTo(const SyntaxCase& row, std::ostream* out) { *out << row.name; }
};
class SyntaxText : public testing::TestWithParam<SyntaxCase> {};

TEST_P(SyntaxText, ExplainsTheErrorInPlainWords) {
  const SyntaxCase& row = GetParam();
  const Problem problem = only_problem(row.text);
  EXPECT_EQ(problem.where, std::string("ztcp.conf:") + row.where);
  EXPECT_THAT(problem.what, HasSubstr(row.what));
  EXPECT_THAT(problem.mend, HasSubstr(row.mend));
}

INSTANTIATE_TEST_SUITE_P(
    Line, SyntaxText,
    testing::Values(SyntaxCase{"open_quote", "schema = 1\nname = \"ztcp0\n[tcp]\n", "2:8",
                               "the text that begins here has no closing \"",
                               "where the text ends"},
                    SyntaxCase{"open_quote_at_the_end", "schema = 1\nname = 'ztcp0", "2:8",
                               "has no closing '", "where the text ends"},
                    SyntaxCase{"word", nic_with("\"memif\"", "memif"), "4:10",
                               "the value of driver has no quotes", "write driver = \"memif\""},
                    SyntaxCase{"word_with_comment", nic_with("\"memif\"", "memif  # shared"),
                               "4:10", "has no quotes", "write driver = \"memif\""},
                    SyntaxCase{"address", nic_with("\"10.0.0.1/24\"", "10.0.0.1/24"), "5:11",
                               "the value of address has no quotes",
                               "write address = \"10.0.0.1/24\""},
                    SyntaxCase{"path", with_nic("run_dir = /run/ztcp"), "2:11", "has no quotes",
                               "write run_dir = \"/run/ztcp\""},
                    SyntaxCase{"boolean", with_nic("[tcp]\npacing = True"), "3:10",
                               "wanted true or false", "write pacing = true"},
                    SyntaxCase{"no_number", "schema = one\n", "1:10",
                               "schema = one, wanted an integer, 1..1", "write an integer"},
                    SyntaxCase{"word_for_zero", nic_with("\"memif\"", "\"pci\"\nqueues = auto"),
                               "5:10", "has no quotes", "write queues = \"auto\""},
                    SyntaxCase{"no_value", with_nic("[tcp]\nrto_min_us ="), "3:13",
                               "rto_min_us has no value", "remove the line"},
                    SyntaxCase{"binary",
                               std::string("\x7f"
                                           "ELF\x02\x01\x01\0\0\0",
                                           10),
                               "1:5", "not a text file", "name the config file"},
                    SyntaxCase{"compressed", std::string("\x1f\x8b.................. x = y", 25),
                               "1:1", "not a text file", "name the config file"}),
    [](const auto& row) { return row.param.name; });

TEST(SyntaxText, NeverShowsTheClusterKey) {
  const std::string secret(64, 'a');
  for (const std::string& line : {"cluster_key = " + secret, "cluster_key = \"" + secret}) {
    const Problem problem = only_problem(with_nic("[messages]\n" + line));
    EXPECT_THAT(problem.what + problem.mend, Not(HasSubstr("aaaa"))) << line;
  }
}

}  // namespace
}  // namespace ztcp::config
