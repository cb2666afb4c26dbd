// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_log.h"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1000s};

std::string warning_of(Trouble trouble, Duration span,
                       std::initializer_list<CountFinding::Part> parts) {
  Finding finding;
  finding.trouble = trouble;
  finding.span = span;
  for (const auto& part : parts) finding.all_parts[finding.part_count++] = part;
  return warning(finding);
}

TEST(NicWarning, HasTheCountersAndTheAdvice) {
  EXPECT_EQ(warning_of(Trouble::kInvalidHello, 3s,
                       {{"rejected_bad_magic", 30}, {"rejected_timed_out", 7}}),
            "rejected 37 connections without a valid hello in 3 s (30 rejected_bad_magic, 7 "
            "rejected_timed_out): open messages.listen_port to the job's hosts alone (security "
            "group); hosts of the job need the same ztcp and cluster_key");
}

TEST(NicWarning, ExistsForEveryTrouble) {
  for (std::size_t i = 0; i < kTroubles; ++i) {
    const std::string line = warning_of(static_cast<Trouble>(i), 60s, {{"counter", 12}});
    EXPECT_THAT(line, testing::MatchesRegex("[a-z]+ 12 .+ in 60 s \\(12 counter\\): .+"));
  }
  const std::string macs = warning_of(Trouble::kArpConflicts, 0s, {});
  EXPECT_TRUE(
      macs.starts_with("received 0 ARP or neighbour discovery packets with a new or conflicting "
                       "MAC address in 1 s (): two hosts have one "
                       "address"))
      << macs;
}

TEST(NicSummary, NamesUnusualCountersThatAreNotZero) {
  NicCounts counts;
  counts.link.tx_frames = 12;
  counts.link.tx_bytes = 3456;
  EXPECT_EQ(summary(counts),
            "sent 12 frames (3456 bytes), received 0 frames (0 bytes), retransmitted 0 bytes, 0 "
            "timeouts");
  counts.acceptor.strangers.bad_key = 1;
  counts.ring_full = 7;
  EXPECT_TRUE(summary(counts).ends_with("0 timeouts; 1 rejected_keys, 7 tx_ring_full"))
      << summary(counts);
}

TEST(NicSummary, NamesCountersAsTheStatisticsPageDoes) {
  NicCounts counts;
  counts.tcp.tlp_fired = 3;
  counts.redials = 2;
  stats::CounterValues page;
  stats::add_to(page, nic_counter::kUnusual, counts);
  EXPECT_EQ(page[stats::Counter::kTailProbes], 3U);
  EXPECT_EQ(page[stats::Counter::kRedials], 2U);
  EXPECT_TRUE(summary(counts).ends_with("; 3 tail_loss_probes, 2 redials")) << summary(counts);
}

// Grouped receives show that NCCL shares connections.
TEST(NicSummary, NamesGroupedReceivesOnlyWhenThereWereSome) {
  NicCounts counts;
  EXPECT_EQ(summary(counts).find("grouped"), std::string::npos);
  counts.groups = {.posted = 12, .largest = 4};
  counts.ring_full = 1;
  EXPECT_TRUE(
      summary(counts).ends_with("0 timeouts, 12 grouped receives of up to 4; 1 tx_ring_full"))
      << summary(counts);
}

// A log line has 1023 bytes, including the NIC's name.
TEST(NicSummary, IsCutToFitALogLine) {
  NicCounts counts;
  // The structs contain counters only.
  const auto fill = [](auto& group) {
    auto* at = reinterpret_cast<std::uint64_t*>(&group);
    std::fill_n(at, sizeof(group) / sizeof(*at), 500'000ULL);
  };
  fill(counts.tcp);
  fill(counts.acceptor);
  fill(counts.link);
  counts.groups = {.posted = 500'000, .largest = 8};
  counts.ring_full = 500'000ULL;
  EXPECT_LT(summary(counts).size(), 960U);
  EXPECT_TRUE(summary(counts).ends_with(", and more")) << summary(counts);
}

TEST(NicLog, KeepsLinesUntilTheyAreTaken) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "0000:3b:00.0 net_virtio", deferred_log);
  EXPECT_TRUE(deferred_log.empty());
  log.link_lost(LinkState::kGone);
  log.nobody_left(kNow, {});
  EXPECT_FALSE(deferred_log.empty());
  const auto lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].level, log::Level::kWarn);
  EXPECT_EQ(lines[0].text,
            "ztcp0: NIC ztcp0 (0000:3b:00.0 net_virtio) was taken out of this machine; every "
            "connection on it has failed: put it back, run ztcp_setup and start the job again");
  EXPECT_EQ(lines[1].level, log::Level::kInfo);
  EXPECT_TRUE(lines[1].text.starts_with("ztcp0: no connection is left; so far it sent 0 frames ("))
      << lines[1].text;
  EXPECT_TRUE(deferred_log.empty());
}

TEST(NicLog, ResetHasItsOwnTextAndAdvice) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "memory", deferred_log);
  log.link_lost(LinkState::kReset);
  EXPECT_EQ(deferred_log.take()[0].text,
            "ztcp0: NIC ztcp0 (memory) was reset by its host or its firmware; every connection on "
            "it has failed: start the job again");
}

TEST(NicLog, DetachedProgramHasItsOwnTextAndAdvice) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "xdp eth0", deferred_log);
  log.link_lost(LinkState::kDetached);
  EXPECT_EQ(deferred_log.take()[0].text,
            "ztcp0: NIC ztcp0 (xdp eth0) has lost its XDP program: the kernel receives its frames "
            "now; every connection on it has failed: leave ztcp's program on the interface while "
            "jobs run, and start the job again");
}

TEST(NicLog, LogsAChangeOfCongestionControlOnceAMinuteForEachHost) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "memory", deferred_log);
  const IpAddress host = Ipv4Address{0x0a000002};
  log.congestion_control(kNow, {host, "bbr", 1200us});
  auto lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, log::Level::kInfo);
  EXPECT_EQ(lines[0].text,
            "ztcp0: congestion control to 10.0.0.2: bbr, since packets are lost without a queue on "
            "the way (shortest round trip 1200 us): look at the error counters of the switches and "
            "of both NICs; tcp.congestion_control = \"cubic\" keeps CUBIC");
  log.congestion_control(kNow + 1s, {host, "cubic", 1200us});
  EXPECT_TRUE(deferred_log.empty());
  log.congestion_control(kNow + 1s, {Ipv4Address{0x0a000003}, "bbr", 1ms});
  EXPECT_EQ(deferred_log.take().size(), 1U) << "another host";
  log.congestion_control(kNow + 61s, {host, "cubic", 1200us});
  lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text,
            "ztcp0: congestion control to 10.0.0.2: cubic again, since packets are lost in a queue "
            "on the way, or more of them than before (shortest round trip 1200 us): other traffic "
            "shares the path");
}

TEST(NicLog, LogsAFlowThatLeavesItsPathWithTheEvidence) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "memory", deferred_log);
  using Cause = tcp::Reroute::Cause;
  const Endpoint peer{Ipv4Address{0x0a000002}, 7471};
  log.reroute(kNow, {peer, 40000, Cause::kTimeouts, 2});
  auto lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, log::Level::kInfo);
  EXPECT_EQ(
      lines[0].text,
      "ztcp0: the flow from port 40000 to 10.0.0.2:7471 changed its IPv6 flow label to leave "
      "its path, after 2 retransmission timeouts in a row: a switch or a cable on the way has "
      "failed, if that host is up");
  log.reroute(kNow + 59s, {peer, 40001, Cause::kMarks, 12});
  EXPECT_TRUE(deferred_log.empty()) << "once a minute for each host";
  log.reroute(kNow + 60s, {peer, 40001, Cause::kMarks, 12});
  lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(
      lines[0].text.ends_with("after 12 round trips in a row in which switches marked most "
                              "of its bytes: that path is congested"));
  log.reroute(kNow, {{Ipv4Address{0x0a000003}, 7471}, 40002, Cause::kDuplicates, 2});
  lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].text.ends_with(
      "since that host repeated bytes 2 times that were acknowledged: a switch or a cable on the "
      "way to it has failed"));
}

TEST(NicLog, LogsEachPathMtuChangeOnceAMinute) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "memory", deferred_log);
  const IpAddress host = Ipv4Address{0x0a000002};
  using Cause = tcp::PathMtuChange::Cause;
  log.path_mtu(kNow, {host, 9000, 1500, Cause::kSilence});
  auto lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, log::Level::kWarn);
  EXPECT_EQ(lines[0].text,
            "ztcp0: packets of 9000 bytes do not reach 10.0.0.2, small ones do: a connection goes "
            "on with packets of 1500 bytes; set one MTU on the NICs, switches and tunnels of this "
            "network and as mtu_bytes in each host's ztcp.conf (ztcp_setup --check)");
  log.path_mtu(kNow + 1s, {host, 9000, 1500, Cause::kSilence});
  EXPECT_TRUE(deferred_log.empty()) << "another connection to the same host";
  log.path_mtu(kNow + 1s, {host, 1500, 1400, Cause::kSilence});
  log.path_mtu(kNow + 1s, {Ipv4Address{0x0a000003}, 9000, 1500, Cause::kSilence});
  EXPECT_EQ(deferred_log.take().size(), 2U) << "smaller still, and another host";
  log.path_mtu(kNow + 2s, {host, 1400, 9000, Cause::kProbe});
  log.path_mtu(kNow + 2s, {host, 1400, 9000, Cause::kProbe});
  lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, log::Level::kInfo);
  EXPECT_EQ(lines[0].text, "ztcp0: packets of 9000 bytes reach 10.0.0.2 again");
  log.path_mtu(kNow + 2s, {host, 9000, 8800, Cause::kRouter});
  lines = deferred_log.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(
      lines[0].text.starts_with("ztcp0: a router on the path to 10.0.0.2 forwards packets of "
                                "8800 bytes, not of 9000: "))
      << lines[0].text;
  log.path_mtu(kNow + 2s + NicLog::kPathInterval, {host, 9000, 8800, Cause::kRouter});
  EXPECT_EQ(deferred_log.take().size(), 1U) << "repeated after the interval";
}

TEST(NicLog, LogsTheRouterOnceAMinute) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "memory", deferred_log);
  const IpAddress a = *parse_ip("fe80::a");
  const IpAddress b = *parse_ip("fe80::b");
  const auto text = [&](const tcp::RouterChange& change) {
    log.router(kNow, change);
    const auto lines = deferred_log.take();
    return lines.empty() ? std::string() : lines[0].text;
  };
  EXPECT_EQ(text({IpAddress(), a}),
            "ztcp0: the router fe80::a leads to other networks, by its advertisement");
  EXPECT_EQ(text({a, b}),
            "ztcp0: the router fe80::b leads to other networks now, in place of fe80::a");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(text({b, a}) + text({a, b}), "");
  EXPECT_EQ(text({b, IpAddress()}),
            "ztcp0: the router fe80::b serves no longer, and no other advertises itself: new "
            "connections to other networks fail; look at the network's routers, or write gateway = "
            "\"...\"");
  EXPECT_EQ(text({b, IpAddress()}), "");
  log.router(kNow + NicLog::kPathInterval, {a, b});
  EXPECT_EQ(deferred_log.take().size(), 1U);
}

TEST(NicLog, LogsEachChangeOfTheAddressOnceAMinute) {
  using Kind = tcp::AddressChange::Kind;
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "memory", deferred_log);
  const auto text = [&](Kind kind, TimePoint now = kNow) {
    log.address(now, {.kind = kind,
                      .own = *parse_ip("2001:db8::1"),
                      .prefix = *parse_ip_prefix("2001:db9::/64"),
                      .router = *parse_ip("fe80::a"),
                      .valid = 90s});
    const auto lines = deferred_log.take();
    return lines.empty() ? std::string() : lines[0].text;
  };
  EXPECT_EQ(text(Kind::kDeprecated),
            "ztcp0: the address 2001:db8::1 is deprecated (router fe80::a) and may be used for 90 "
            "s more: the next job should take another one; look at the prefixes that the network's "
            "routers advertise");
  EXPECT_EQ(text(Kind::kRenewed),
            "ztcp0: the router fe80::a has renewed the address 2001:db8::1, for 90 s");
  EXPECT_EQ(text(Kind::kEnded),
            "ztcp0: the lifetime of the address 2001:db8::1 is over, and the router fe80::a has "
            "not renewed it: open connections stay, new ones fail; start the job anew, or write "
            "address = \"...\"");
  EXPECT_EQ(text(Kind::kOtherPrefix),
            "ztcp0: the router fe80::a advertises 2001:db9::/64, too: this process keeps "
            "2001:db8::1 (only the first prefix of an advertisement gives an address)");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(text(Kind::kDeprecated) + text(Kind::kRenewed), "");
  EXPECT_NE(text(Kind::kDeprecated, kNow + NicLog::kPathInterval), "");
}

// Some jobs open and close connections in a loop.
TEST(NicLog, LogsNoConnectionLeftAtMostOnceAMinute) {
  comms::DeferredLog deferred_log;
  NicLog log("ztcp0", "memory", deferred_log);
  log.nobody_left(kNow, {});
  log.nobody_left(kNow + NicLog::kNobodyLeftInterval - 1ms, {});
  ASSERT_EQ(deferred_log.take().size(), 1U);
  log.nobody_left(kNow + NicLog::kNobodyLeftInterval, {});
  EXPECT_EQ(deferred_log.take().size(), 1U);
}

}  // namespace
}  // namespace ztcp::ustack
