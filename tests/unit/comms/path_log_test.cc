// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/path_log.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using namespace std::chrono_literals;
using msg::PeerTrouble;

constexpr Endpoint kSilentPeer{Ipv4Address{0x0a000002}, 7471};
constexpr Endpoint kOtherPeer{Ipv4Address{0x0a000003}, 7471};

class PathLogTest : public testing::Test {
 protected:
  // The lines logged since the last call.
  std::string said() {
    std::string all;
    for (const DeferredLog::Line& line : deferred_log.take())
      all += (line.level == log::Level::kWarn ? "WARN " : "INFO ") + line.text + "\n";
    return all;
  }
  static bool has(const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  }

  DeferredLog deferred_log;
  PathLog log{"eth0", deferred_log, "ens5", 9000};
  TimePoint now = TimePoint(1h);
};

TEST_F(PathLogTest, SilentPeer_IsLoggedOnceAndSoIsItsReturn) {
  log.on_trouble(now, kSilentPeer, PeerTrouble::kSilent, 2100ms);
  log.on_trouble(now + 1s, kOtherPeer, PeerTrouble::kSilent, 2100ms);
  const std::string warning = said();
  EXPECT_TRUE(has(warning, "WARN eth0: 10.0.0.2 has not answered for 2.1 s")) << warning;
  EXPECT_FALSE(has(warning, "10.0.0.3")) << "one line a minute";
  log.on_trouble_over(now + 5s, kOtherPeer, PeerTrouble::kSilent, 5s);
  EXPECT_EQ(said(), "") << "its silence was not logged";
  log.on_trouble_over(now + 9s, kSilentPeer, PeerTrouble::kSilent, 11200ms);
  log.on_trouble_over(now + 9s, kSilentPeer, PeerTrouble::kSilent, 11200ms);
  EXPECT_EQ(said(), "INFO eth0: 10.0.0.2 answers again, after 11.2 s\n");
  log.on_trouble(now + 61s, kOtherPeer, PeerTrouble::kSilent, 2s);
  EXPECT_TRUE(has(said(), "10.0.0.3"));
}

TEST_F(PathLogTest, FlowThatLeftABadPath_IsLoggedWithItsEvidence) {
  log.on_redialled(now, kSilentPeer, {.lost_port = 40001, .port = 40005, .marked_percent = 73});
  EXPECT_TRUE(has(said(),
                  "INFO eth0: the flow from port 40001 to 10.0.0.2:7471 left its path, after 0 "
                  "retransmission timeouts and with 73 % of its bytes marked by switches"));
  log.on_redialled(now, kSilentPeer, {.lost_port = 40001, .port = 40005});
  EXPECT_TRUE(has(said(), "was lost and has been dialled again"));
  EXPECT_EQ(log.flows_moved(), 1U);
  EXPECT_EQ(log.flows_redialled(), 2U);
}

TEST_F(PathLogTest, StoppedProcess_HasAnotherLineThanASilentHost) {
  log.on_trouble(now, kSilentPeer, PeerTrouble::kSilent, 2s);
  static_cast<void>(said());
  log.on_trouble(now, kSilentPeer, PeerTrouble::kStandsStill, 2s);
  EXPECT_TRUE(has(said(), "the process at 10.0.0.2 has taken nothing for 2.0 s"));
  log.on_trouble_over(now, kSilentPeer, PeerTrouble::kStandsStill, 30s);
  EXPECT_EQ(said(), "INFO eth0: 10.0.0.2 takes messages again, after 30.0 s\n");
}

TEST_F(PathLogTest, OwnInterfaceDown_SuppressesLinesAboutSilentPeers) {
  log.link_down(now, "eth0 of this host is down: ip link set dev eth0 up");
  log.on_trouble(now + 1s, kSilentPeer, PeerTrouble::kSilent, 2s);
  EXPECT_EQ(said(), "WARN eth0: eth0 of this host is down: ip link set dev eth0 up\n");
  log.link_up(now + 11s, "eth0 of this host is up again");
  EXPECT_EQ(said(), "INFO eth0: eth0 of this host is up again, after 11.0 s\n");
  log.on_trouble(now + 12s, kSilentPeer, PeerTrouble::kSilent, 2s);
  EXPECT_TRUE(has(said(), "has not answered"));
}

TEST_F(PathLogTest, RedialledFlows_AreAllCounted) {
  for (int i = 0; i < 3; ++i) log.on_redialled(now, kSilentPeer, {1500ms, 40000, 50000});
  EXPECT_EQ(log.flows_redialled(), 3U);
  const std::string line = said();
  EXPECT_TRUE(has(line,
                  "INFO eth0: a flow to 10.0.0.2:7471 was lost and has been dialled again, 1.5 s "
                  "after it stopped, from port 50000 instead of 40000 "))
      << line;
}

TEST_F(PathLogTest, SmallSegmentsAndLosses_HaveNumbersAndCommands) {
  log.on_small_segments(now, kSilentPeer, 1360);
  log.loss(now, kSilentPeer.address, 30'000, 1'000'000, 60s);
  const std::string lines = said();
  EXPECT_TRUE(has(lines, "ens5 has an MTU of 9000 bytes")) << lines;
  EXPECT_TRUE(has(lines, "segments of 1360 bytes")) << lines;
  EXPECT_TRUE(has(lines, "net.ipv4.tcp_mtu_probing=1")) << lines;
  EXPECT_TRUE(
      has(lines,
          "3.00 % of the bytes sent in 60 s were sent again (30000 of 1000000, most to 10.0.0.2)"))
      << lines;
}

}  // namespace
}  // namespace ztcp::comms
