// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::probe {
namespace {

using testing::ElementsAre;

std::string failure_of(const std::string& text) {
  try {
    parse_host_list(text, "hosts");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "none";
}

TEST(ProbeHostList, SkipsCommentsAndBlankLines) {
  EXPECT_THAT(parse_host_list("# rack 1\n gpu01 # first\n\r\n\nuser@gpu02\r\nfd00::3", "hosts"),
              ElementsAre("gpu01", "user@gpu02", "fd00::3"));
}

TEST(ProbeHostList, RefusesAHostThatIsListedTwice) {
  EXPECT_EQ(failure_of("gpu01\ngpu02\n\ngpu01\n"),
            "hosts:4: gpu01 is listed in line 1 already; a host is probed by one process");
}

TEST(ProbeHostList, RefusesAnOptionForSshAndOtherTexts) {
  EXPECT_EQ(failure_of("gpu01\n-oProxyCommand=reboot\n"),
            "hosts:2: '-oProxyCommand=reboot' is not a host; each line has one name or address");
  EXPECT_THAT(failure_of("gpu01 gpu02\ngpu03\n"), testing::StartsWith("hosts:1: 'gpu01 gpu02' is"));
  EXPECT_THAT(failure_of("gpu01\ng\x1bpu\n"), testing::StartsWith("hosts:2: 'g?pu' is not"));
}

TEST(ProbeHostList, RefusesFewerThanTwoHosts) {
  EXPECT_EQ(failure_of("gpu01\n"), "hosts: has 1 hosts; at least 2 are needed to measure anything");
  EXPECT_EQ(failure_of(""), "hosts: has 0 hosts; at least 2 are needed to measure anything");
}

}  // namespace
}  // namespace ztcp::perf::probe
