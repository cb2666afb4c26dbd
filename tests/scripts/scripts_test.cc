// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Each script of this folder is a test.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/scripts/script_runner.h"

namespace ztcp::tcp::test {
namespace {

std::vector<std::filesystem::path> scripts() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(ZTCP_SCRIPTS))
    if (entry.path().extension() == ".script") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

class Script : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Script, Passes) {
  const std::string difference = ScriptRunner(GetParam()).run();
  EXPECT_TRUE(difference.empty()) << difference;
}

// The difference that a script with these lines has.
std::string difference_of(const std::string& lines) {
  const std::filesystem::path path = testing::TempDir() + "/a.script";
  std::ofstream(path) << lines;
  return ScriptRunner(path).run();
}

bool has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

TEST(ScriptRunner, ADifferenceNamesLineTextsAndTime) {
  const std::string difference = difference_of("open\nwrite 100\n> . seq 1 len 101\n");
  EXPECT_TRUE(has(difference, "/a.script:3: > . seq 1 len 101\n")) << difference;
  EXPECT_TRUE(has(difference, "expected: . seq 1 len 101 at 1.000 ms\n")) << difference;
  EXPECT_TRUE(has(difference, "got:      . seq 1 ack 1 win 8192 len 100 <ts> at 1.000 ms\n"))
      << difference;
}

TEST(ScriptRunner, SegmentsThatNoLineExpectsAreDifferences) {
  EXPECT_TRUE(has(difference_of("open\nwrite 100\nexpect acked 0\n"), "nothing until then"));
  EXPECT_TRUE(has(difference_of("open\nwrite 100\n"), "(end)"));
  EXPECT_TRUE(has(difference_of("open\nwrite 100\n+1s nothing\n"), "nothing until then"));
}

TEST(ScriptRunner, TimesOutsideTheToleranceAreDifferences) {
  EXPECT_EQ(difference_of("connect\n> SECA\n+200ms > SECA\n"), "");
  EXPECT_TRUE(has(difference_of("connect\n> SECA\n+150ms > SECA\n"), "got:      nothing"));
  EXPECT_TRUE(has(difference_of("connect\n> SECA\n+300ms > SECA\n"), "at 200.0"));
}

TEST(ScriptRunner, UnreadableLinesAreNamed) {
  EXPECT_TRUE(has(difference_of("open\nwrit 100\n"), "a.script:2"));
  EXPECT_TRUE(has(difference_of("open\n< X\n"), "no flags"));
  EXPECT_TRUE(has(difference_of("open\n< . len\n"), "has no value"));
  EXPECT_TRUE(has(difference_of("open\n+5 nothing\n"), "no time"));
  EXPECT_TRUE(has(difference_of("open\nset mtu 9000\n"), "come first"));
}

TEST(ScriptRunner, UnreadablePacketsAreNamed) {
  EXPECT_TRUE(has(difference_of("open\n< . from nowhere\n"), "a.script:2: < . from nowhere"));
  EXPECT_TRUE(has(difference_of("open\n< . from fd00::1\n"), "no address of the family"));
  EXPECT_TRUE(has(difference_of("set gateway router\nset ipv6 on\nopen\n"), "other family"));
  EXPECT_TRUE(has(difference_of("open\n< . headers ah\n"), "no header of IPv4"));
  EXPECT_TRUE(has(difference_of("set ipv6 on\nopen\n< . headers ah\n"), "\"ah\" is no header"));
  EXPECT_TRUE(has(difference_of("open\n< . <raw 01 0>\n"), "no bytes"));
  EXPECT_TRUE(has(difference_of("open\n< echo-request size 1\n"), "no part of echo-request"));
  EXPECT_TRUE(has(difference_of("open\n< echo-reply\n"), "the peer sends no echo-reply"));
  EXPECT_TRUE(has(difference_of("set ipv6 on\nopen\n< advertisement flags X\n"), "no flags: RSO"));
  EXPECT_TRUE(has(difference_of("open\nicmp packet-too-big 1400 seq 1\n"), "of the family"));
  EXPECT_TRUE(has(difference_of("set congestion_control vegas\n"), "no congestion control"));
}

TEST(ScriptRunner, BlocksAreRepeatedAndNested) {
  EXPECT_EQ(difference_of("open\nrepeat 2\nrepeat 3\n< . len 10\nskip\nend\nend\n"
                          "expect received 60\n"),
            "");
  EXPECT_EQ(difference_of("open\nburst\nrepeat 3\n< . len 10\nend\nend\n> . ack 31\n"), "");
  EXPECT_TRUE(has(difference_of("open\nrepeat 2\n"), "a.script:2"));
  EXPECT_TRUE(has(difference_of("open\nrepeat 3\n< . len 10\nend\n"), "nothing until then"));
}

TEST(ScriptRunner, MessagesAreCompared) {
  EXPECT_EQ(difference_of("open\n< echo-request len 8\n> echo-reply to peer len 8\n"), "");
  EXPECT_TRUE(has(difference_of("open\n< echo-request len 8\n> echo-reply len 9\n"),
                  "got:      echo-reply dscp 0 eth-to peer from us len 8 to peer"));
  EXPECT_TRUE(has(difference_of("open\n< echo-request\n> . seq 1\n"), "got:      echo-reply"));
  EXPECT_TRUE(has(difference_of("open\nwrite 1\n> echo-reply\n"), "got:      . seq 1"));
}

INSTANTIATE_TEST_SUITE_P(All, Script, testing::ValuesIn(scripts()), [](const auto& row) {
  std::string name = row.param.stem();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace ztcp::tcp::test
