// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

using stats::Waiting;

void wait_for(stats::Connection& connection, Waiting waiting, double seconds) {
  connection.waiting = waiting;
  connection.progress_ns = static_cast<std::uint64_t>(seconds * 1e9);
}

TEST(Waits, SilentPeerIsSevereAfterASecond) {
  Looks looks(3);
  wait_for(looks.now().connections[1], Waiting::kNetwork, 1.5);
  const Finding finding = first(looks.findings(), Rule::kSilent);
  EXPECT_EQ(finding.severity, Severity::kSevere);
  EXPECT_EQ(finding.subject, "peer gpu-03 (10.0.0.3)");
  EXPECT_NE(finding.text.find("acknowledged nothing for 1.5 s"), std::string::npos);
}

TEST(Waits, ReceiverDoesNotClaimThatBytesAreUnacknowledged) {
  Looks looks(2);
  looks.now().connections[1].peer_host = looks.now().connections[0].peer_host;
  wait_for(looks.now().connections[0], Waiting::kNetwork, 1.5);
  wait_for(looks.now().connections[1], Waiting::kNetwork, 2);
  looks.now().connections[1].way = stats::Way::kReceive;
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kSilent), 2u);
  EXPECT_NE(findings[0].text.find("sent a part of a message and nothing more for 2 s"),
            std::string::npos);
  EXPECT_NE(findings[1].text.find("acknowledged nothing for 1.5 s"), std::string::npos);
}

TEST(Waits, StoppedPeerIsNoFaultOfTheNetwork) {
  Looks looks;
  wait_for(looks.now().connections[0], Waiting::kPeerWindow, 1.5);
  const Finding finding = first(looks.findings(), Rule::kZeroWindow);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NE(finding.text.find("though its host's kernel answers"), std::string::npos);
}

TEST(Waits, PeersDataAndReceiveAreFaultsAfterFiveSeconds) {
  for (const auto& [waiting, rule] : {std::pair{Waiting::kPeerData, Rule::kNoData},
                                      std::pair{Waiting::kPeerReceive, Rule::kNoReceive}}) {
    Looks looks;
    wait_for(looks.now().connections[0], waiting, 2);
    EXPECT_EQ(first(looks.findings(), rule).severity, Severity::kNote);
    EXPECT_FALSE(names_a_fault(looks.findings()));
    wait_for(looks.now().connections[0], waiting, 6);
    EXPECT_EQ(first(looks.findings(), rule).severity, Severity::kWarning);
  }
}

TEST(Waits, StalledMessageIsAFaultAtOnce) {
  Looks looks;
  wait_for(looks.now().connections[0], Waiting::kPeerData, 0.5);
  looks.now().connections[0].is_stalled = true;
  EXPECT_TRUE(names_a_fault(looks.findings()));
}

TEST(Waits, ConnectionsWithAPeerAreOneFinding) {
  Looks looks(2);
  looks.now().connections[1].peer_host = "gpu-02";
  wait_for(looks.now().connections[0], Waiting::kPeerReceive, 6);
  wait_for(looks.now().connections[1], Waiting::kPeerReceive, 9);
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kNoReceive), 1u);
  EXPECT_NE(findings[0].text.find("for 9 s"), std::string::npos);
  EXPECT_NE(findings[0].text.find("2 connections"), std::string::npos);
}

TEST(Waits, IdleConnectionIsHealthy) {
  Looks looks;
  wait_for(looks.now().connections[0], Waiting::kNothing, 100);
  EXPECT_TRUE(looks.findings().empty());
}

TEST(Waits, ShortWaitIsHealthy) {
  Looks looks;
  wait_for(looks.now().connections[0], Waiting::kNetwork, 0.3);
  EXPECT_TRUE(looks.findings().empty());
}

TEST(Waits, ApplicationWithoutPostsIsNamed) {
  Looks looks;
  wait_for(looks.now().connections[0], Waiting::kApplication, 7);
  EXPECT_EQ(first(looks.findings(), Rule::kApplication).severity, Severity::kWarning);
}

TEST(Waits, ClosedWindowByItsShareOfTheTime) {
  Looks looks;
  looks.now().flows[0].zero_window_ns += 40'000'000;
  EXPECT_TRUE(looks.findings().empty());
  looks.now().flows[0].zero_window_ns += 260'000'000;
  looks.now().flows[0].zero_windows += 1;
  Finding finding = first(looks.findings(), Rule::kZeroWindow);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NE(finding.text.find("closed for 300 ms of the last 1 s"), std::string::npos);
  looks.now().flows[0].zero_window_ns += 400'000'000;
  EXPECT_EQ(first(looks.findings(), Rule::kZeroWindow).severity, Severity::kSevere);
}

}  // namespace
}  // namespace ztcp::stat
