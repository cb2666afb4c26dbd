// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/probe/batch.h"
#include "tools/ztcp_perf/probe/tcp_counts.h"
#include "tools/ztcp_perf/spread.h"

namespace ztcp::perf::probe {
namespace {

using Clock = std::chrono::steady_clock;

enum class Step : std::uint32_t { kEnd = 1, kPing, kForward, kBackward, kBoth };

// The leader's order to the follower for one batch.
struct Order {
  Step step = Step::kEnd;
  std::uint32_t bytes_each = 0;
  std::uint64_t messages = 0;
};

constexpr std::size_t kPingBytes = 8;
constexpr std::uint64_t kFirstBytes = std::uint64_t{64} << 10U;
// Shares of the time.
constexpr double kLatencyShare = 0.1;
constexpr double kBandwidthShare = 0.3;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void give(PairLink& link, const Order& order) { link.send(std::as_bytes(std::span(&order, 1))); }

Latency measure_latency(PairLink& link, double budget_s) {
  const auto begin = Clock::now();
  std::vector<float> us;
  for (std::uint64_t pings = 1; pings > 0;) {
    const auto batch_began = Clock::now();
    give(link, {Step::kPing, kPingBytes, pings});
    us.clear();  // The largest batch is the least disturbed by its start.
    us.reserve(pings);
    for (std::uint64_t i = 0; i < pings; ++i) {
      const auto sent = Clock::now();
      link.transfer({1, kPingBytes}, {});
      link.transfer({}, {1, kPingBytes});
      us.push_back(static_cast<float>(seconds_since(sent) * 1e6 / 2));
    }
    pings = next_batch(pings, seconds_since(batch_began), budget_s - seconds_since(begin));
  }
  const Spread spread = summarise(us);
  return {
      .samples = spread.samples, .min_us = spread.min, .p50_us = spread.p50, .p99_us = spread.p99};
}

// One direction's gigabits per second, in the largest batch.
double measure_bandwidth(PairLink& link, Step step, double budget_s) {
  const auto begin = Clock::now();
  std::uint64_t largest = 0;
  double rate = 0;
  for (std::uint64_t bytes = kFirstBytes; bytes > 0;) {
    const std::uint64_t each = std::min<std::uint64_t>(bytes, PairLink::kMostBytes);
    const Flow flow{(bytes + each - 1) / each, static_cast<std::size_t>(each)};
    const auto batch_began = Clock::now();
    give(link, {step, static_cast<std::uint32_t>(each), flow.messages});
    link.transfer(step == Step::kBackward ? Flow{} : flow, step == Step::kForward ? Flow{} : flow);
    // Without it the end of a batch would be the time of the last isend, not of the arrival.
    if (step != Step::kBackward) link.transfer({}, {1, kPingBytes});
    const double took_s = seconds_since(batch_began);
    const std::uint64_t moved = flow.messages * each;
    if (moved >= largest) {
      largest = moved;
      rate = static_cast<double>(moved) * 8e-9 / took_s;
    }
    bytes = next_batch(bytes, took_s, budget_s - seconds_since(begin));
  }
  return rate;
}

}  // namespace

Measured lead(PairLink& link, double seconds) {
  Measured measured;
  measured.latency = measure_latency(link, seconds * kLatencyShare);
  const double each_s = seconds * kBandwidthShare;
  measured.forward_gbit_per_s = measure_bandwidth(link, Step::kForward, each_s);
  measured.backward_gbit_per_s = measure_bandwidth(link, Step::kBackward, each_s);
  measured.both_gbit_per_s = 2 * measure_bandwidth(link, Step::kBoth, each_s);
  // Each end counts while the other still has its connections open: at a close by the peer the
  // transport may close its own sockets, and with them go their counters.
  measured.resent = resent_share(count_tcp_bytes());
  give(link, {});
  link.transfer({}, {1, kPingBytes});
  return measured;
}

Measured follow(PairLink& link) {
  while (true) {
    Order order;
    link.receive(std::as_writable_bytes(std::span(&order, 1)));
    if (order.bytes_each > PairLink::kMostBytes) fail("the other end sent a malformed order");
    const Flow flow{order.messages, order.bytes_each};
    switch (order.step) {
      case Step::kEnd: {
        Measured measured;
        measured.resent = resent_share(count_tcp_bytes());
        link.transfer({1, kPingBytes}, {});
        return measured;
      }
      case Step::kPing:
        for (std::uint64_t i = 0; i < order.messages; ++i) {
          link.transfer({}, {1, flow.bytes_each});
          link.transfer({1, flow.bytes_each}, {});
        }
        break;
      case Step::kForward:
        link.transfer({}, flow);
        link.transfer({1, kPingBytes}, {});
        break;
      case Step::kBackward:
        link.transfer(flow, {});
        break;
      case Step::kBoth:
        link.transfer(flow, flow);
        link.transfer({1, kPingBytes}, {});
        break;
      default:
        fail("the other end sent a malformed order");
    }
  }
}

}  // namespace ztcp::perf::probe
