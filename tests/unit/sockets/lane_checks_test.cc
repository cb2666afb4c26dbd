// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A silent peer is probed by the kernel's keepalives. The kernel sends them after a second of
// silence at the earliest, so the test takes a little longer than that.
#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/sockets/lane_host.h"
#include "transport/comms/comm.h"
#include "transport/comms/listener.h"

namespace ztcp::sockets {
namespace {

using namespace std::chrono_literals;

constexpr IpAddress kElsewhere{Ipv4Address{0x7f000002}};

TimePoint heard(LaneHost& host, IpAddress remote) {
  return host.pollers.front()->with_backend(
      [&](TimePoint now) { return host.pollers.front()->backend().heard_from(now, remote); });
}

TEST(LaneChecks, AProbedIdlePeerIsHeardSoonerThanByKeepalives) {
  const auto host = std::make_shared<LaneHost>(1);
  auto listener = comms::CommListener::open(host);
  ASSERT_TRUE(listener);
  const OwnConnection connection(host, **listener);
  ASSERT_NE(connection.receiver, nullptr);
  EXPECT_EQ(heard(*host, kElsewhere), TimePoint::min());

  const TimePoint idle_since = comms::Poller::read_clock();
  const auto waited = [&] { return comms::Poller::read_clock() - idle_since; };
  const Duration keepalive = SocketTimes().keepalive_idle;
  TimePoint next_probe{};
  while (heard(*host, kLoopback4) < idle_since + 500ms && waited() < keepalive) {
    if (const TimePoint now = comms::Poller::read_clock(); now >= next_probe) {
      host->pollers.front()->backend().probe(kLoopback4);
      next_probe = now + 300ms;
    }
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LT(waited(), keepalive - 500ms);
}

}  // namespace
}  // namespace ztcp::sockets
