// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/straggler_log.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using std::chrono::seconds;
using Verdict = stats::MessageMonitor::Verdict;

constexpr TimePoint kStart{std::chrono::hours(1)};

class StragglerLogTest : public testing::Test {
 protected:
  void note(TimePoint now, Verdict verdict) {
    stragglers_.note(now, verdict, {stats::Way::kReceive, {Ipv4Address{0x0a000002}, 7471}, 0},
                     {seconds(12), seconds(11), std::chrono::milliseconds(2)},
                     stats::Waiting::kPeerData, log_);
  }
  StragglerLog stragglers_{"ztcp1", {}};
  DeferredLog log_;
};

TEST_F(StragglerLogTest, LogsOneLineOfEachKindInTenSeconds) {
  for (int i = 0; i < 5; ++i) note(kStart, Verdict::kStalled);
  note(kStart, Verdict::kSlow);
  EXPECT_EQ(log_.take().size(), 2U);
  EXPECT_EQ(stragglers_.stalled(), 5U);
  EXPECT_EQ(stragglers_.slow(), 1U);
  note(kStart + seconds(10), Verdict::kStalled);
  const auto lines = log_.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text,
            "ztcp1: stalled: receiving from 10.0.0.2:7471 has made no progress for 11.0 s: the "
            "peer has not sent its data; 4 more since the last such line");
  EXPECT_EQ(lines[0].level, log::Level::kInfo);
}

TEST_F(StragglerLogTest, ASlowMessageIsComparedWithTheUsualTime) {
  note(kStart, Verdict::kSlow);
  const auto lines = log_.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].text.find("has taken 12.000 s for a message, usually 0.002000 s"),
            std::string::npos)
      << lines[0].text;
}

TEST_F(StragglerLogTest, NamesTheHostOfAPeerThatHasToldIt) {
  const StragglerLog::Connection connection{
      stats::Way::kReceive, {Ipv4Address{0x0a000002}, 7471}, 0, HostName::of("gpu-02")};
  EXPECT_EQ(StragglerLog::name_of_peer(connection), "gpu-02 (10.0.0.2)");
  stragglers_.note_end(kStart, connection, {.slow = 2}, log_);
  const auto lines = log_.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].text.find("receiving from gpu-02 (10.0.0.2:7471) ended"), std::string::npos)
      << lines[0].text;
}

TEST_F(StragglerLogTest, AConnectionWithoutStragglersEndsSilently) {
  stragglers_.note_end(kStart, {}, {}, log_);
  EXPECT_TRUE(log_.empty());
  stragglers_.note_end(kStart, {}, {.slow = 2, .stalled = 1, .longest = seconds(3)}, log_);
  const auto lines = log_.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].text.find("2 slow and 1 stalled messages; the longest wait was 3.0 s"),
            std::string::npos)
      << lines[0].text;
}

TEST(MonitorSettingsTest, ComeFromTheConfig) {
  const stats::MonitorSettings settings =
      monitor_settings({.enabled = false, .slow_factor = 7, .slow_min_ms = 5, .stalled_ms = 300});
  EXPECT_FALSE(settings.is_on);
  EXPECT_EQ(settings.slow_factor, 7U);
  EXPECT_EQ(settings.slow_floor, std::chrono::milliseconds(5));
  EXPECT_EQ(settings.stalled_after, std::chrono::milliseconds(300));
}

}  // namespace
}  // namespace ztcp::comms
