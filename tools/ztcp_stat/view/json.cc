// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/json.h"

#include <fmt/format.h>

#include "tools/ztcp_stat/look/window.h"
#include "tools/ztcp_stat/view/rows.h"
#include "tools/ztcp_stat/why/case.h"
#include "tools/ztcp_stat/why/diagnose.h"

namespace ztcp::stat {
namespace {

using nlohmann::json;

// "zero_window_time_ns", "sent_bytes", "redials".
std::string name_with_unit(const stats::CounterText& text) {
  const std::string name = text.name;
  return text.unit == stats::Unit::kNanoseconds ? name + "_ns" : name;
}

json counters_of(const stats::CounterValues& values) {
  json out = json::object();
  for (std::size_t i = 0; i < stats::kCounters; ++i)
    out[name_with_unit(stats::kCounterTexts[i])] = values.all()[i];
  return out;
}

// 64-bit hashes as hex: JSON readers take numbers for doubles.
json hash_of(std::uint64_t hash) {
  return hash == 0 ? json(nullptr) : json(fmt::format("{:016x}", hash));
}

json process_of(const Page& page) {
  const stats::Process& p = page.snapshot.process;
  const bool is_stopped = page.state == 'T' || page.state == 't';
  return {{"file", page.file.string()},
          {"pid", p.pid},
          {"running", p.is_running},
          {"stopped", is_stopped},
          {"ended_cleanly", p.has_ended_cleanly},
          {"version", p.version},
          {"host", p.host},
          {"command", p.command},
          {"config_path", p.config_path},
          {"config_hash", hash_of(p.config_hash)},
          {"rank", p.rank < 0 ? json(nullptr) : json(p.rank)},
          {"ranks", p.ranks == 0 ? json(nullptr) : json(p.ranks)},
          {"local_rank", p.local_rank < 0 ? json(nullptr) : json(p.local_rank)},
          {"started_realtime_ns", p.started_realtime_ns},
          {"updated_realtime_ns", p.updated_realtime_ns},
          {"cpu_throttled_ns", p.cpu_throttled_ns},
          {"cpu_stolen_ns", p.cpu_stolen_ns},
          {"descriptors_open", p.descriptors_open},
          {"descriptors_limit", p.descriptors_limit},
          {"connections_unlisted", p.connections_unlisted}};
}

json device_of(const stats::Device& d, const Window& window) {
  return {{"index", d.index},
          {"name", d.name},
          {"carrier", text_of(d.carrier)},
          {"link", text_of(d.link)},
          {"nic", d.nic},
          {"plan", d.plan},
          {"speed_mbps", d.speed_mbps},
          {"mtu_bytes", d.mtu_bytes},
          {"address", d.address},
          {"numa_node", d.numa_node < 0 ? json(nullptr) : json(d.numa_node)},
          {"gpu", d.gpu},
          {"send_bytes_per_s", window.rate(d, stats::Counter::kSentBytes)},
          {"receive_bytes_per_s", window.rate(d, stats::Counter::kReceivedBytes)}};
}

json lane_of(const stats::Lane& lane) {
  return {{"device", lane.device},
          {"number", lane.number},
          {"cpu", lane.cpu < 0 ? json(nullptr) : json(lane.cpu)},
          {"connections", lane.connections},
          {"queue_depth", lane.queue_depth},
          {"queued_bytes", lane.queued_bytes},
          {"counters", counters_of(lane.counters)}};
}

json connection_of(const stats::Connection& c, const Window& window) {
  return {{"id", c.id},
          {"device", c.device},
          {"lane", c.lane},
          {"way", c.way == stats::Way::kSend ? "send" : "receive"},
          {"state", c.state},
          {"peer", c.peer},
          {"peer_host", c.peer_host},
          {"communicator", hash_of(c.communicator)},
          {"waits_for", text_of(c.waiting)},
          {"bytes", c.bytes},
          {"bytes_per_s", window.progress(c).bytes_per_second()},
          {"messages", c.messages},
          {"messages_in_flight", c.messages_in_flight},
          {"oldest_ns", c.oldest_ns},
          {"without_progress_ns", c.progress_ns},
          {"slow_messages", c.slow_messages},
          {"stalled_messages", c.stalled_messages},
          {"credit_stalls", c.credit_stalls},
          {"credit_stall_time_ns", c.credit_stall_ns},
          {"slow", c.is_slow},
          {"stalled", c.is_stalled},
          {"opened_realtime_ns", c.opened_realtime_ns}};
}

json flow_of(const stats::Flow& f) {
  return {{"connection", f.connection},
          {"number", f.number},
          {"state", f.state},
          {"local", f.local},
          {"remote", f.remote},
          {"in_flight_bytes", f.in_flight_bytes},
          {"congestion_control", f.congestion_control},
          {"cwnd_bytes", f.cwnd_bytes},
          {"peer_window_bytes", f.peer_window_bytes},
          {"own_window_bytes", f.own_window_bytes},
          {"mss_bytes", f.mss_bytes},
          {"rtt_min_ns", f.rtt_min_ns},
          {"rtt_ns", f.rtt_ns},
          {"rtt_p50_ns", f.rtt_p50_ns},
          {"rtt_p99_ns", f.rtt_p99_ns},
          {"sent_bytes", f.sent_bytes},
          {"received_bytes", f.received_bytes},
          {"retransmitted_bytes", f.retransmitted_bytes},
          {"needless_bytes", f.needless_bytes},
          {"timeouts", f.timeouts},
          {"fast_recoveries", f.fast_recoveries},
          {"tail_loss_probes", f.tail_probes},
          {"spurious_recoveries", f.spurious_recoveries},
          {"zero_windows", f.zero_windows},
          {"zero_window_time_ns", f.zero_window_ns},
          {"failures", f.failures},
          {"recoveries", f.recoveries}};
}

json latency_of(const stats::Latency& latency, const Window& window) {
  const auto counts = window.counts(latency);
  json classes = json::array();
  for (std::size_t size = 0; size < counts.size(); ++size) {
    const std::uint64_t messages = stats::total(counts[size]);
    if (messages == 0) continue;
    classes.push_back(
        {{"up_to_bytes", size < stats::kSizeClassLimits.size() ? json(stats::kSizeClassLimits[size])
                                                               : json(nullptr)},
         {"messages", messages},
         {"p50_ns", stats::quantile_ns(counts[size], 0.5)},
         {"p99_ns", stats::quantile_ns(counts[size], 0.99)}});
  }
  return {{"device", latency.device},
          {"way", latency.way == stats::Way::kSend ? "send" : "receive"},
          {"peer", latency.peer},
          {"peer_host", latency.host},
          {"sizes", std::move(classes)}};
}

json page_of(const Page& page, const Look* before, const Look& after) {
  const Window window = window_of(page, before, after);
  json out = process_of(page);
  out["window_s"] = window.seconds();
  for (const char* list : {"devices", "lanes", "connections", "flows", "latencies"})
    out[list] = json::array();
  for (const stats::Device& device : page.snapshot.devices)
    out["devices"].push_back(device_of(device, window));
  for (const stats::Lane& lane : page.snapshot.lanes) out["lanes"].push_back(lane_of(lane));
  for (const stats::Connection& connection : page.snapshot.connections)
    out["connections"].push_back(connection_of(connection, window));
  for (const stats::Flow& flow : page.snapshot.flows) out["flows"].push_back(flow_of(flow));
  for (const stats::Latency& latency : page.snapshot.latencies)
    out["latencies"].push_back(latency_of(latency, window));
  return out;
}

}  // namespace

json json_of(const Look* before, const Look& after) {
  json processes = json::array();
  json damaged = json::array();
  for (const Page& page : after.pages) {
    if (page.error.empty())
      processes.push_back(page_of(page, before, after));
    else
      damaged.push_back({{"file", page.file.string()}, {"error", page.error}});
  }
  return {{"tool", "ztcp_stat"},
          {"version", ZTCP_VERSION},
          {"realtime_ns", after.realtime_ns},
          {"processes", std::move(processes)},
          {"damaged", std::move(damaged)}};
}

json json_of(const Findings& findings) {
  json list = json::array();
  for (const Finding& finding : findings)
    list.push_back({{"severity", name_of(finding.severity)},
                    {"rule", name_of(finding.rule)},
                    {"subject", finding.subject},
                    {"text", finding.text},
                    {"command", finding.command}});
  return {{"tool", "ztcp_stat"},
          {"version", ZTCP_VERSION},
          {"healthy", !names_a_fault(findings)},
          {"findings", std::move(list)}};
}

}  // namespace ztcp::stat
