// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/export/exposition.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "tools/ztcp_stat/export/metric_text.h"

namespace ztcp::stat {
namespace {

using stats::Snapshot;

constexpr double kNsPerSecond = 1e9;
double seconds(std::uint64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

std::string counter_name(const stats::CounterText& text) {
  return fmt::format("ztcp_{}{}_total", text.name,
                     text.unit == stats::Unit::kNanoseconds ? "_seconds" : "");
}

const char* to_text(stats::Way way) { return way == stats::Way::kSend ? "send" : "receive"; }

const char* to_text(stats::Carrier carrier) {
  switch (carrier) {
    case stats::Carrier::kUserspaceTcp:
      return "userspace_tcp";
    case stats::Carrier::kKernelSockets:
      return "kernel_sockets";
    case stats::Carrier::kRdma:
      return "rdma";
  }
  return "unknown";
}

const char* to_text(stats::Waiting waiting) {
  switch (waiting) {
    case stats::Waiting::kNothing:
      return "nothing";
    case stats::Waiting::kPeerData:
      return "peer_data";
    case stats::Waiting::kPeerReceive:
      return "peer_receive";
    case stats::Waiting::kNetwork:
      return "network";
    case stats::Waiting::kApplication:
      return "application";
    case stats::Waiting::kPeerWindow:
      return "peer_window";
    case stats::Waiting::kConnecting:
      return "connecting";
    case stats::Waiting::kThisHost:
      return "this_host";
  }
  return "unknown";
}

constexpr std::array<const char*, stats::kSizeClasses> kSizeLabels = {"256", "4096", "65536",
                                                                      "1048576", "+Inf"};

// A peer's address without its port, which differs from connection to connection.
std::string host_of(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) return endpoint;
  if (endpoint.front() == '[') return endpoint.substr(1, endpoint.find(']') - 1);
  return endpoint.find(':') == colon ? endpoint.substr(0, colon) : endpoint;
}

std::string name_of(const stats::Connection& connection) {
  return connection.peer_host.empty() ? host_of(connection.peer) : connection.peer_host;
}

// Limits of Prometheus' buckets in octaves of the page's histogram: each is the upper end of one of
// its buckets, so that the counts are exact.
constexpr std::size_t kFirstOctave = 1;  // 4 us.
constexpr std::size_t kLastOctave = 27;  // 268 s.
constexpr std::uint64_t limit_ns(std::size_t octave) { return std::uint64_t{2000} << octave; }

void add_histogram(Family& family, const Labels& labels, const stats::Histogram::Counts& counts,
                   std::size_t octaves_each) {
  std::uint64_t seen = 0;
  double sum = 0;
  std::size_t bucket = 0;
  for (std::size_t octave = kFirstOctave; octave <= kLastOctave; octave += octaves_each) {
    for (; bucket < counts.size() && stats::Histogram::upper_ns(bucket) <= limit_ns(octave);
         ++bucket) {
      seen += counts[bucket];
      sum += counts[bucket] * seconds(stats::Histogram::upper_ns(bucket));
    }
    family.add_suffixed("_bucket", labels.with("le", fmt::format("{}", seconds(limit_ns(octave)))),
                        seen);
  }
  for (; bucket < counts.size(); ++bucket) {
    seen += counts[bucket];
    sum += counts[bucket] * seconds(stats::Histogram::upper_ns(bucket));
  }
  family.add_suffixed("_bucket", labels.with("le", "+Inf"), seen);
  family.add_suffixed("_sum", labels, sum);
  family.add_suffixed("_count", labels, seen);
}

void add_counts(stats::Histogram::Counts& sum, const stats::Histogram::Counts& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

// All families, in the order of the text.
class Exposition {
 public:
  Exposition() {
    for (const stats::CounterText& text : stats::kCounterTexts)
      counters_.emplace_back(counter_name(text), "counter", text.meaning);
  }

  void add(const Snapshot& snapshot) {
    const stats::Process& process = snapshot.process;
    Labels labels{{"node", process.host},
                  {"rank", process.rank < 0 ? "" : std::to_string(process.rank)},
                  {"pid", std::to_string(process.pid)}};
    running_.add(labels, std::uint64_t{process.is_running});
    crashed_.add(labels, std::uint64_t{!process.is_running && !process.has_ended_cleanly});
    updated_.add(labels, static_cast<double>(process.updated_realtime_ns) / kNsPerSecond);
    if (!process.is_running) return;
    info_.add(
        labels.with("version", process.version)
            .with("config_hash", fmt::format("{:016x}", process.config_hash))
            .with("local_rank", process.local_rank < 0 ? "" : std::to_string(process.local_rank))
            .with("nranks", process.ranks == 0 ? "" : std::to_string(process.ranks))
            .with("command", process.command),
        std::uint64_t{1});
    started_.add(labels, static_cast<double>(process.started_realtime_ns) / kNsPerSecond);
    throttled_.add(labels, seconds(process.cpu_throttled_ns));
    descriptors_.add(labels, std::uint64_t{process.descriptors_open});
    descriptors_limit_.add(labels, std::uint64_t{process.descriptors_limit});
    unlisted_.add(labels, process.connections_unlisted);
    for (const stats::Device& device : snapshot.devices)
      add_device(snapshot, device, labels.with("device", device.name));
  }

  void add_damaged(std::size_t number) { damaged_.add(Labels{}, std::uint64_t{number}); }

  std::vector<const Family*> all() const {
    std::vector<const Family*> out = {
        &running_,        &crashed_,     &updated_,           &info_,         &started_,
        &throttled_,      &descriptors_, &descriptors_limit_, &unlisted_,     &device_info_,
        &link_up_,        &speed_,       &queue_depth_,       &queued_bytes_, &connections_,
        &waiting_,        &latency_,     &peer_latency_,      &peer_oldest_,  &peer_rtt_,
        &peer_in_flight_, &damaged_};
    for (const Family& family : counters_) out.push_back(&family);
    return out;
  }

 private:
  void add_device(const Snapshot& snapshot, const stats::Device& device, const Labels& labels) {
    device_info_.add(
        labels.with("carrier", to_text(device.carrier))
            .with("nic", device.nic)
            .with("address", device.address)
            .with("mtu_bytes", device.mtu_bytes == 0 ? "" : std::to_string(device.mtu_bytes))
            .with("numa_node", device.numa_node < 0 ? "" : std::to_string(device.numa_node))
            .with("gpu", device.gpu),
        std::uint64_t{1});
    link_up_.add(labels, std::uint64_t{device.link == stats::LinkStatus::kUp});
    speed_.add(labels, device.speed_mbps * 125e3);
    add_lanes(snapshot, device.index, labels);
    add_connections(snapshot, device.index, labels);
    add_latencies(snapshot, device.index, labels);
  }

  void add_lanes(const Snapshot& snapshot, std::uint32_t device, const Labels& labels) {
    stats::CounterValues sum;
    std::uint64_t depth = 0;
    std::uint64_t queued = 0;
    for (const stats::Lane& lane : snapshot.lanes) {
      if (lane.device != device) continue;
      for (std::size_t i = 0; i < stats::kCounters; ++i)
        sum[static_cast<stats::Counter>(i)] += lane.counters.all()[i];
      depth += lane.queue_depth;
      queued += lane.queued_bytes;
    }
    queue_depth_.add(labels, depth);
    queued_bytes_.add(labels, queued);
    for (std::size_t i = 0; i < stats::kCounters; ++i) {
      if (stats::kCounterTexts[i].unit == stats::Unit::kNanoseconds)
        counters_[i].add(labels, seconds(sum.all()[i]));
      else
        counters_[i].add(labels, sum.all()[i]);
    }
  }

  void add_connections(const Snapshot& snapshot, std::uint32_t device, const Labels& labels) {
    std::map<std::string, std::uint64_t> states;
    std::map<stats::Waiting, std::uint64_t> waiting;
    struct PeerSums {
      std::uint64_t oldest_ns = 0;
      std::uint64_t rtt_ns = 0;
      std::uint64_t in_flight_bytes = 0;
    };
    std::map<std::tuple<std::string, std::uint64_t, stats::Way>, PeerSums> peers;
    std::map<std::uint64_t, PeerSums*> by_connection;
    for (const stats::Connection& connection : snapshot.connections) {
      if (connection.device != device) continue;
      ++states[connection.state];
      if (connection.waiting != stats::Waiting::kNothing) ++waiting[connection.waiting];
      PeerSums& sums = peers[{name_of(connection), connection.communicator, connection.way}];
      sums.oldest_ns = std::max(sums.oldest_ns, connection.oldest_ns);
      by_connection[connection.id] = &sums;
    }
    for (const stats::Flow& flow : snapshot.flows) {
      const auto at = by_connection.find(flow.connection);
      if (at == by_connection.end()) continue;
      at->second->rtt_ns = std::max(at->second->rtt_ns, flow.rtt_ns);
      at->second->in_flight_bytes += flow.in_flight_bytes;
    }
    for (const auto& [state, number] : states)
      connections_.add(labels.with("state", state), number);
    for (const auto& [cause, number] : waiting)
      waiting_.add(labels.with("waiting", to_text(cause)), number);
    for (const auto& [key, sums] : peers) {
      const auto& [peer, communicator, way] = key;
      const Labels of_peer =
          labels.with("peer", peer)
              .with("comm", communicator == 0 ? "" : fmt::format("0x{:x}", communicator))
              .with("way", to_text(way));
      peer_oldest_.add(of_peer, seconds(sums.oldest_ns));
      peer_rtt_.add(of_peer, seconds(sums.rtt_ns));
      peer_in_flight_.add(of_peer, sums.in_flight_bytes);
    }
  }

  void add_latencies(const Snapshot& snapshot, std::uint32_t device, const Labels& labels) {
    using BySize = std::array<stats::Histogram::Counts, stats::kSizeClasses>;
    std::map<stats::Way, BySize> sums;
    std::map<std::pair<std::string, stats::Way>, stats::Histogram::Counts> peers;
    for (const stats::Latency& latency : snapshot.latencies) {
      if (latency.device != device) continue;
      const std::string& peer = latency.host.empty() ? latency.peer : latency.host;
      auto& of_peer = peers[{peer.empty() ? "other" : peer, latency.way}];
      for (std::size_t size = 0; size < stats::kSizeClasses; ++size) {
        add_counts(sums[latency.way][size], latency.by_class[size]);
        add_counts(of_peer, latency.by_class[size]);
      }
    }
    for (const auto& [way, by_size] : sums) {
      for (std::size_t size = 0; size < stats::kSizeClasses; ++size)
        add_histogram(latency_,
                      labels.with("way", to_text(way)).with("max_bytes", kSizeLabels[size]),
                      by_size[size], 2);
    }
    // Fewer buckets, because a process can have hundreds of peers.
    for (const auto& [key, counts] : peers)
      add_histogram(peer_latency_, labels.with("peer", key.first).with("way", to_text(key.second)),
                    counts, 4);
  }

  Family running_{"ztcp_process_running", "gauge", "1 while the process runs."};
  Family crashed_{"ztcp_process_crashed", "gauge",
                  "1 if the process ended without closing its page."};
  Family updated_{"ztcp_process_updated_timestamp_seconds", "gauge",
                  "Time of the page's last refresh."};
  Family info_{"ztcp_process_info", "gauge", "Version, config and place of a process."};
  Family started_{"ztcp_process_start_timestamp_seconds", "gauge", "Start of the process."};
  Family throttled_{"ztcp_cpu_throttled_seconds_total", "counter",
                    "Time for which the CPU quota of its cgroup stopped the process."};
  Family descriptors_{"ztcp_descriptors_open", "gauge", "File descriptors in use."};
  Family descriptors_limit_{"ztcp_descriptors_limit", "gauge",
                            "Limit of file descriptors (RLIMIT_NOFILE)."};
  Family unlisted_{"ztcp_connections_unlisted", "gauge",
                   "Connections that have no place on the page."};
  Family device_info_{"ztcp_device_info", "gauge",
                      "Transport, NIC and address of a device, its MTU, NUMA node and GPU."};
  Family link_up_{"ztcp_device_link_up", "gauge", "1 while the device's link is up."};
  Family speed_{"ztcp_device_speed_bytes_per_second", "gauge", "Line rate; 0: unknown."};
  Family queue_depth_{"ztcp_messages_in_flight", "gauge", "Posted messages that are not done."};
  Family queued_bytes_{"ztcp_queued_bytes", "gauge", "Bytes written and not yet sent."};
  Family connections_{"ztcp_connections", "gauge", "Connections by state."};
  Family waiting_{"ztcp_connections_waiting", "gauge",
                  "Connections with posted messages, by the reason for which they wait."};
  Family latency_{"ztcp_message_latency_seconds", "histogram",
                  "Time from a message's post to its end, by direction and size class."};
  Family peer_latency_{"ztcp_peer_message_latency_seconds", "histogram",
                       "Time from a message's post to its end, by peer."};
  Family peer_oldest_{"ztcp_peer_oldest_message_seconds", "gauge",
                      "Age of the oldest message that is not done."};
  Family peer_rtt_{"ztcp_peer_rtt_seconds", "gauge", "Largest smoothed round trip of its flows."};
  Family peer_in_flight_{"ztcp_peer_in_flight_bytes", "gauge", "Bytes sent and not acknowledged."};
  Family damaged_{"ztcp_pages_damaged", "gauge", "Statistics pages that could not be read."};
  std::vector<Family> counters_;
};

}  // namespace

std::vector<MetricText> all_metrics() {
  std::vector<MetricText> out;
  const Exposition exposition;
  for (const Family* family : exposition.all())
    out.push_back({family->name(), family->type(), family->help()});
  return out;
}

std::string exposition(std::span<const Snapshot> processes, std::size_t damaged) {
  Exposition all;
  for (const Snapshot& snapshot : processes) all.add(snapshot);
  all.add_damaged(damaged);
  std::string out;
  for (const Family* family : all.all()) family->write(out);
  return out;
}

}  // namespace ztcp::stat
