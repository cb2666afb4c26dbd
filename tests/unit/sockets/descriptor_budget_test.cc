// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/descriptor_budget.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/descriptor.h"
#include "tests/support/log_capture.h"
#include "tests/support/transfers.h"
#include "tests/unit/sockets/two_hosts.h"

namespace ztcp::sockets {
namespace {

using namespace std::chrono_literals;
using test::expect_carries;
using test::Pair;
using test::pattern;
using testing::HasSubstr;
constexpr Error kNoDescriptor{Errc::kOutOfMemory, EMFILE, "socket"};

class Descriptors : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  void TearDown() override { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  void limit_to(rlim_t soft) {
    const rlimit limit{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  rlimit before_{};
  DescriptorBudget budget;
};

TEST_F(Descriptors, AllButAReserveAreForConnections) {
  limit_to(1024);
  EXPECT_EQ(DescriptorBudget::usable(), 960U);
  EXPECT_TRUE(budget.may_keep(959));
  EXPECT_FALSE(budget.may_keep(960));
  limit_to(4096);
  EXPECT_TRUE(budget.may_keep(960)) << "the application may raise its limit at any time";
}

TEST_F(Descriptors, TheApplicationsDescriptorsAreNotLeft) {
  limit_to(1024);
  DescriptorBudget::Part one(budget);
  DescriptorBudget::Part other(budget);
  one.set(300);
  other.set(200);
  EXPECT_EQ(budget.left(), 460U);
  EXPECT_TRUE(budget.may_keep(600)) << "100 of the lower numbers are no connections";
  EXPECT_EQ(budget.in_use(), 600U);
  EXPECT_EQ(budget.left(), 360U);
  one.set(0);
  EXPECT_EQ(budget.connections(), 200U);
  EXPECT_EQ(budget.left(), 660U) << "a lane may have another lane's freed descriptors";
}

TEST_F(Descriptors, DescriptorsThatTheApplicationClosedAreLeftAgain) {
  limit_to(256);
  std::vector<Descriptor> files(239);
  for (Descriptor& file : files) file = Descriptor(dup(0));
  EXPECT_FALSE(budget.has_room() && budget.may_keep(files.back().get()));
  EXPECT_EQ(budget.left(), 0U);
  EXPECT_FALSE(budget.has_room());
  files.clear();
  EXPECT_TRUE(budget.has_room());
  EXPECT_NE(budget.left(), 0U);
}

TEST_F(Descriptors, AShortageIsLoggedOnceAMinuteWithTheLimitAndTheCommand) {
  limit_to(128);
  DescriptorBudget::Part part(budget);
  part.set(100);
  EXPECT_FALSE(budget.may_keep(120));
  const TimePoint now{1h};
  const std::string text = budget.shortage(now, kNoDescriptor);
  EXPECT_THAT(text, HasSubstr("120 of 128 (ulimit -n) are in use, 100 of them by connections"));
  EXPECT_THAT(text, HasSubstr("8 are left to the application"));
  EXPECT_THAT(text, HasSubstr("(ulimit -n "));
  EXPECT_EQ(budget.shortage(now + 59s, kNoDescriptor), "");
  EXPECT_NE(budget.shortage(now + 61s, kNoDescriptor), "");
}

TEST_F(Descriptors, ATableThatTheApplicationHasFilledIsReportedAsFull) {
  limit_to(64);
  std::vector<Descriptor> files;
  for (int fd = dup(0); fd >= 0; fd = dup(0)) files.emplace_back(fd);
  EXPECT_THAT(budget.shortage(TimePoint{1h}, kNoDescriptor),
              HasSubstr("64 of 64 (ulimit -n) are in use, 0 of them by connections"));
}

TEST_F(Descriptors, AShortageOfTheMachineNamesTheSysctl) {
  EXPECT_THAT(budget.shortage(TimePoint{1h}, {Errc::kOutOfMemory, ENFILE, "socket"}),
              HasSubstr("sysctl -w fs.file-max="));
}

TEST_F(Descriptors, TheInitLineStatesTheConnectionsThatTheLimitAllows) {
  limit_to(1024);
  EXPECT_EQ(descriptors_text(960), "");
  EXPECT_THAT(descriptors_text(961),
              HasSubstr("at most 960 connections in this process (ulimit -n is 1024"));
}

bool names_descriptors(const std::string& line) {
  return line.find("(ulimit -n) are in use") != std::string::npos;
}

rlim_t next_descriptor() {
  const Descriptor next(dup(0));
  return static_cast<rlim_t>(next.get());
}

class ScopedDescriptorLimit {
 public:
  explicit ScopedDescriptorLimit(rlim_t soft) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit limit{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~ScopedDescriptorLimit() { lift(); }
  void lift() const { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

// With a limit below the open descriptors no connection can be opened. Existing connections go on,
// and waiting ones are served once there is room again.
TEST(DescriptorShortage, WithoutDescriptorsConnectionsWait) {
  TwoHosts hosts({.redial_window_ms = 500});
  Pair before = test::connect(hosts[0], hosts[1]);
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = limit.rlim_max};
  const test::LogCapture log;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  auto refused = hosts[0].begin_connect(0, (*listener)->handle(), {});
  Result<bool> ready = false;
  if (refused) {
    while (ready && !*ready) ready = (*refused)->is_ready();
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(refused);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kOutOfMemory);
  EXPECT_EQ(ready.error().sys_errno, EMFILE);
  const auto warnings = log.warnings();
  EXPECT_EQ(std::count_if(warnings.begin(), warnings.end(), names_descriptors), 1) << log.warned();
  expect_carries(before, pattern(1000, 3));
  EXPECT_TRUE(test::connect(hosts[0], hosts[1]).sender);
}

TEST(DescriptorShortage, AConnectThatFindsNoDescriptorIsTriedAgain) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  Pair before = test::connect(hosts[0], hosts[1]);
  const ScopedDescriptorLimit none(next_descriptor());
  const test::LogCapture log;
  auto comm = hosts[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_TRUE(comm);
  Result<bool> ready = false;
  const auto has_warned = [&] { return std::ranges::any_of(log.warnings(), names_descriptors); };
  while (ready && !has_warned()) ready = (*comm)->is_ready();
  ASSERT_TRUE(ready) << "it failed without a retry";
  EXPECT_FALSE(*ready);
  none.lift();
  while (ready && !*ready) {
    ready = (*comm)->is_ready();
    ASSERT_TRUE((*listener)->accept());
  }
  EXPECT_TRUE(ready) << log.warned();
}

// All connections of one host with itself, so both ends count: no lane has a fixed share.
TEST(DescriptorShortage, OneLaneMayHaveAllDescriptorsThatAShellGrants) {
  const ScopedDescriptorLimit shell(1024);
  TwoHosts hosts({.max_connections = 4096, .workers = 8, .flows = 1});
  std::vector<Pair> pairs;
  for (int i = 0; i < 400; ++i) {
    pairs.push_back(test::connect(hosts[0], hosts[0]));
    ASSERT_TRUE(pairs.back().sender && pairs.back().receiver) << i;
  }
}

}  // namespace
}  // namespace ztcp::sockets
