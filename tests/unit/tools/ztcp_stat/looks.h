// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two looks at a process, made by hand: one device, one lane, as many peers as a test wants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/ztcp_stat/look/look.h"
#include "tools/ztcp_stat/why/diagnose.h"

namespace ztcp::stat {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kStartNs = 1'700'000'000 * kSecondNs;
inline constexpr std::int64_t kUpNs = 3600 * kSecondNs;  // At the first look.

inline stats::Flow flow_of(std::uint64_t connection) {
  stats::Flow flow;
  flow.connection = connection;
  flow.state = "ESTABLISHED";
  flow.mss_bytes = 8948;
  flow.rtt_min_ns = 20'000;
  flow.sent_bytes = 1'000'000'000;
  return flow;
}

inline stats::Connection connection_to(std::uint64_t id, const std::string& host) {
  stats::Connection connection;
  connection.id = id;
  connection.state = "open";
  connection.peer = "10.0.0." + std::to_string(id) + ":4000";
  connection.peer_host = host;
  connection.bytes = 1'000'000'000;
  connection.messages = 1000;
  connection.messages_in_flight = 1;
  connection.updated_monotonic_ns = kUpNs;
  return connection;
}

inline Page page_of_process(std::uint32_t pid) {
  Page page;
  page.file = "/run/ztcp/" + std::to_string(pid) + ".page";
  page.state = 'S';
  stats::Process& process = page.snapshot.process;
  process.pid = pid;
  process.is_running = true;
  process.version = "0.1.0";
  process.host = "gpu-01";
  process.command = "python3";
  process.rank = 3;
  process.ranks = 16;
  process.started_realtime_ns = kStartNs;
  process.updated_realtime_ns = kStartNs + kUpNs;
  process.updated_monotonic_ns = kUpNs;
  process.descriptors_open = 100;
  process.descriptors_limit = 1024;
  stats::Device device;
  device.name = "ztcp0";
  device.nic = "eth0";
  device.carrier = stats::Carrier::kKernelSockets;
  device.link = stats::LinkStatus::kUp;
  device.speed_mbps = 100'000;
  device.mtu_bytes = 9000;
  page.snapshot.devices.push_back(device);
  stats::Lane lane;
  lane.cpu = 5;
  lane.queue_depth = 1;
  lane.updated_monotonic_ns = kUpNs;
  page.snapshot.lanes.push_back(lane);
  return page;
}

// Two looks, one second apart, at process 4242 with peers gpu-02, gpu-03 and so on. A test changes
// `after`, and `before` where it wants a longer past.
struct Looks {
  explicit Looks(std::size_t peers = 1) {
    Page page = page_of_process(4242);
    for (std::uint64_t id = 2; id < 2 + peers; ++id) {
      page.snapshot.connections.push_back(connection_to(id, "gpu-0" + std::to_string(id)));
      page.snapshot.flows.push_back(flow_of(id));
    }
    before.pages.push_back(page);
    before.monotonic_ns = kUpNs;
    before.realtime_ns = kStartNs + kUpNs;
    page.snapshot.process.updated_monotonic_ns += kSecondNs;
    page.snapshot.process.updated_realtime_ns += kSecondNs;
    page.snapshot.lanes[0].updated_monotonic_ns += kSecondNs;
    for (stats::Connection& c : page.snapshot.connections) {
      c.bytes += 100'000'000;
      c.updated_monotonic_ns += kSecondNs;
    }
    for (stats::Flow& f : page.snapshot.flows) f.sent_bytes += 100'000'000;
    after.pages.push_back(page);
    after.monotonic_ns = kUpNs + kSecondNs;
    after.realtime_ns = kStartNs + kUpNs + kSecondNs;
  }

  stats::Snapshot& now() { return after.pages[0].snapshot; }
  stats::Snapshot& then() { return before.pages[0].snapshot; }
  std::uint64_t& counter(stats::Counter which) { return now().lanes[0].counters[which]; }
  Findings findings() const { return diagnose(&before, after); }

  Look before;
  Look after;
};

inline std::size_t count(const Findings& findings, Rule rule) {
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(),
                                                [&](const Finding& f) { return f.rule == rule; }));
}

// The first finding of a rule; one without a subject: there is none.
inline Finding first(const Findings& findings, Rule rule) {
  for (const Finding& finding : findings)
    if (finding.rule == rule) return finding;
  return {};
}

}  // namespace ztcp::stat
