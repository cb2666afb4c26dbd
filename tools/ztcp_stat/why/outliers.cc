// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One NIC, host or path that is slower than the median of the others.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

constexpr std::size_t kFewestOthers = 2;
constexpr std::uint64_t kFewestMessages = 20;
constexpr double kSlowP50 = 3;
constexpr double kSlowP99 = 5;
constexpr double kSlowRate = 0.5;
constexpr double kSlowRttMin = 5;
constexpr double kSmallestDifferenceNs = 50'000;  // Less is nothing to act upon.

struct Quantiles {
  double p50_ns = 0;
  double p99_ns = 0;
};

// Values of all others: the median without the one that is compared.
std::vector<double> others(const std::vector<double>& values, std::size_t without) {
  std::vector<double> rest = values;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(without));
  return rest;
}

bool is_slower(double value, double usual, double times) {
  return usual > 0 && value >= times * usual && value - usual >= kSmallestDifferenceNs;
}

void add_counts(stats::Histogram::Counts& sum, const stats::Histogram::Counts& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

// A peer's host by its address; the address when no connection tells it.
std::string host_of_address(const Case& one, const std::string& address) {
  const std::string bare = without_port(address);
  for (const stats::Connection& connection : one.now().connections)
    if (without_port(connection.peer) == bare) return peer_name(connection);
  return bare;
}

// Compares the peers' latencies of one direction and size class.
void compare_latencies(const std::map<std::string, stats::Histogram::Counts>& peers,
                       const std::string& messages, Findings& findings) {
  std::vector<std::string> names;
  std::vector<double> p50, p99;
  for (const auto& [name, counts] : peers) {
    if (stats::total(counts) < kFewestMessages) continue;
    names.push_back(name);
    p50.push_back(static_cast<double>(stats::quantile_ns(counts, 0.5)));
    p99.push_back(static_cast<double>(stats::quantile_ns(counts, 0.99)));
  }
  if (names.size() < kFewestOthers + 1) return;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double usual50 = median(others(p50, i));
    const double usual99 = median(others(p99, i));
    const bool is_slow = is_slower(p50[i], usual50, kSlowP50);
    if (!is_slow && !is_slower(p99[i], usual99, kSlowP99)) continue;
    findings.push_back(
        {Severity::kWarning, Rule::kSlowPeer, "peer " + names[i],
         fmt::format("is slow: {} take {} (p50) and {} (p99), with the median of {} other peers {} "
                     "and {}",
                     messages, time_text(static_cast<std::uint64_t>(p50[i])),
                     time_text(static_cast<std::uint64_t>(p99[i])), names.size() - 1,
                     time_text(static_cast<std::uint64_t>(usual50)),
                     time_text(static_cast<std::uint64_t>(usual99))),
         "ztcp_stat why  # on that host",
         is_slow ? p50[i] / usual50 : p99[i] / std::max(usual99, 1.0)});
  }
}

void find_slow_messages(Cases cases, Findings& findings) {
  constexpr const char* kClasses[] = {"to 256 B", "to 4 KiB", "to 64 KiB", "to 1 MiB",
                                      "over 1 MiB"};
  using ByPeer = std::map<std::string, stats::Histogram::Counts>;
  std::map<std::pair<stats::Way, std::size_t>, ByPeer> all;
  for (const Case& one : cases)
    for (const stats::Latency& latency : one.now().latencies) {
      if (latency.peer.empty()) continue;
      const auto grown = one.window.counts(latency);
      const std::string name = host_of_address(one, latency.peer);
      for (std::size_t size = 0; size < grown.size(); ++size)
        if (stats::total(grown[size]) > 0) add_counts(all[{latency.way, size}][name], grown[size]);
    }
  for (const auto& [kind, peers] : all)
    compare_latencies(
        peers,
        fmt::format("{} messages {}", kind.first == stats::Way::kSend ? "sent" : "received",
                    kClasses[kind.second]),
        findings);
}

void find_slow_rates(Cases cases, Findings& findings) {
  struct Sum {
    double rate = 0;
    bool is_busy = true;  // Messages are under way, and nothing but the network is waited for.
  };
  std::map<stats::Way, std::map<std::string, Sum>> ways;
  for (const Case& one : cases)
    for (const stats::Connection& connection : one.now().connections) {
      const Progress progress = one.window.progress(connection);
      if (progress.bytes == 0) continue;
      Sum& sum = ways[connection.way][peer_name(connection)];
      sum.rate += progress.bytes_per_second();
      sum.is_busy &= connection.messages_in_flight > 0 &&
                     connection.waiting != stats::Waiting::kPeerData &&
                     connection.waiting != stats::Waiting::kPeerReceive &&
                     connection.waiting != stats::Waiting::kApplication;
    }
  for (const auto& [way, peers] : ways) {
    if (peers.size() < kFewestOthers + 1) continue;
    std::vector<double> rates;
    for (const auto& [name, sum] : peers) rates.push_back(sum.rate);
    std::size_t at = 0;
    for (const auto& [name, sum] : peers) {
      const double usual = median(others(rates, at++));
      if (!sum.is_busy || sum.rate >= kSlowRate * usual) continue;
      findings.push_back({Severity::kWarning, Rule::kSlowPeer, "peer " + name,
                          fmt::format("{} {} although messages are under way all the time; the "
                                      "median of {} other peers is {}",
                                      way == stats::Way::kSend ? "takes" : "sends",
                                      rate_text(sum.rate), peers.size() - 1, rate_text(usual)),
                          "ztcp_stat why  # on that host", usual / std::max(sum.rate, 1.0)});
    }
  }
}

void find_long_paths(Cases cases, Findings& findings) {
  std::map<std::string, double> peers;
  for (const Case& one : cases)
    for (const stats::Flow& flow : one.now().flows) {
      const stats::Connection* connection = one.window.connection_of(flow);
      if (connection == nullptr || flow.rtt_min_ns == 0) continue;
      const auto rtt = static_cast<double>(flow.rtt_min_ns);
      const auto [entry, is_new] = peers.try_emplace(peer_name(*connection), rtt);
      if (!is_new) entry->second = std::min(entry->second, rtt);
    }
  if (peers.size() < kFewestOthers + 1) return;
  std::vector<double> trips;
  for (const auto& [name, rtt] : peers) trips.push_back(rtt);
  std::size_t at = 0;
  for (const auto& [name, rtt] : peers) {
    const double usual = median(others(trips, at++));
    if (!is_slower(rtt, usual, kSlowRttMin)) continue;
    findings.push_back({Severity::kWarning, Rule::kSlowPeer, "peer " + name,
                        fmt::format("is far away: its shortest round trip is {}, with the median "
                                    "of {} other peers {}",
                                    time_text(static_cast<std::uint64_t>(rtt)), peers.size() - 1,
                                    time_text(static_cast<std::uint64_t>(usual))),
                        "traceroute", rtt / usual});
  }
}

}  // namespace

void find_slow_devices(Cases cases, Findings& findings) {
  for (const Case& one : cases) {
    const auto& devices = one.now().devices;
    for (const stats::Device& device : devices) {
      const auto fastest = std::max_element(
          devices.begin(), devices.end(), [&](const stats::Device& a, const stats::Device& b) {
            return (a.carrier == device.carrier ? a.speed_mbps : 0) <
                   (b.carrier == device.carrier ? b.speed_mbps : 0);
          });
      if (device.speed_mbps == 0 || device.link == stats::LinkStatus::kDown ||
          device.speed_mbps * 2 > fastest->speed_mbps)
        continue;
      findings.push_back({Severity::kWarning, Rule::kSlowDevice, device_name(one, device),
                          fmt::format("runs at {} Mb/s, {} at {}: a link that fell back to a lower "
                                      "speed slows every collective",
                                      device.speed_mbps, fastest->name, fastest->speed_mbps),
                          fmt::format("ethtool {}", device.nic.empty() ? device.name : device.nic),
                          static_cast<double>(fastest->speed_mbps) / device.speed_mbps});
    }
  }
}

void find_slow_peers(Cases cases, Findings& findings) {
  find_slow_messages(cases, findings);
  find_slow_rates(cases, findings);
  find_long_paths(cases, findings);
}

}  // namespace ztcp::stat
