// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sending after idle time (RFC 5681 section 4.1, RFC 7661 section 4.4): whatever the congestion
// control, no window leaves as one burst, since the network may have changed.
#include <algorithm>
#include <deque>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"
#include "transport/tcp/auto_control.h"
#include "transport/tcp/bbr.h"
#include "transport/tcp/cubic.h"
#include "transport/tcp/dctcp.h"
#include "transport/tcp/swift.h"

namespace ztcp::tcp::test {
namespace {

constexpr std::uint32_t kTenSegments = 10 * kMss;

struct IdleControl {
  const char* name;
  MakeCongestionControl make;
};

struct IdleSender : Peer {
  explicit IdleSender(const IdleControl& control) : Peer(config_with(control)) { open(); }
  static StackConfig config_with(const IdleControl& control) {
    StackConfig config = test_config();
    config.tcp.congestion_control = control.make;
    config.tcp.keepalive_idle = 60s;
    return config;
  }
  std::uint32_t window() const {
    std::uint32_t bytes = 0;
    stack.for_each_connection([&](const ConnectionStatistics& c) { bytes = c.cwnd_bytes; });
    return bytes;
  }
  // Sends so many bytes over a path of 1 ms without losses.
  void send(std::size_t bytes) {
    std::deque<std::pair<TimePoint, std::uint32_t>> acks;
    std::uint32_t sent = done;
    write(bytes);
    done += static_cast<std::uint32_t>(bytes);
    while (user.acked < done) {
      for (const Seg& seg : collect()) {
        const std::uint32_t end =
            seg.seq + static_cast<std::uint32_t>(seg.payload.size()) - first();
        sent = std::max(sent, end);
        acks.emplace_back(now + kRoundTrip, end);
      }
      pass(20us);
      std::uint32_t acked = 0;
      for (; !acks.empty() && acks.front().first <= now; acks.pop_front())
        acked = std::max(acked, acks.front().second);
      if (acked > 0) ack(first() + acked);
    }
  }
  // Bytes that leave at once.
  std::uint32_t burst(std::size_t bytes) {
    write(bytes);
    std::uint32_t sent = 0;
    for (const Seg& seg : collect()) sent += static_cast<std::uint32_t>(seg.payload.size());
    return sent;
  }

  std::uint32_t done = 0;
};

class IdleRestart : public testing::TestWithParam<IdleControl> {};

TEST_P(IdleRestart, NoWholeWindowLeavesAsABurst) {
  IdleSender sender(GetParam());
  sender.send(8U << 20);
  ASSERT_GE(sender.window(), 10 * kTenSegments);
  for (const Duration idle : {Duration(20ms), Duration(10s)}) {
    sender.pass(idle);
    const std::uint32_t window = sender.window();
    const std::uint32_t burst = sender.burst(2 * window);
    EXPECT_GT(burst, 0U);
    EXPECT_LE(burst, std::max(window / 3, kTenSegments)) << "of " << window;
    sender.done += 2 * window;
    sender.ack(sender.first() + sender.done - 2 * window + burst);
    sender.send(kMss);
  }
}

INSTANTIATE_TEST_SUITE_P(Controls, IdleRestart,
                         testing::Values(IdleControl{"auto_", make_congestion_control<AutoControl>},
                                         IdleControl{"cubic", make_congestion_control<Cubic>},
                                         IdleControl{"dctcp", make_congestion_control<Dctcp>},
                                         IdleControl{"bbr", make_congestion_control<Bbr>},
                                         IdleControl{"swift", make_congestion_control<Swift>}),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ztcp::tcp::test
