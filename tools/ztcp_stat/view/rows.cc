// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/rows.h"

#include <algorithm>

#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

struct Loss {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  double share() const {
    return lost == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(sent + lost);
  }
  void add(const Window& window, const stats::Flow& flow) {
    const stats::Flow* then = window.before(flow);
    sent += growth(flow.sent_bytes, then ? then->sent_bytes : 0);
    const auto again = growth(flow.retransmitted_bytes, then ? then->retransmitted_bytes : 0);
    lost += again - std::min(again, growth(flow.needless_bytes, then ? then->needless_bytes : 0));
  }
};

double badness_of(const ConnectionRow& row) {
  const stats::Connection& c = row.connection;
  double badness = c.state == "failed" ? 1e7 : 0;
  if (c.is_stalled) badness += 1e6;
  if (c.is_slow) badness += 1e5;
  badness += static_cast<double>(row.timeouts) * 1e4 + row.loss_share * 1e6;
  // Waiting for the application is the application's business.
  if (c.waiting != stats::Waiting::kNothing && c.waiting != stats::Waiting::kApplication)
    badness += static_cast<double>(c.progress_ns) / 1e6;
  return badness;
}

bool has(const std::string& text, const std::string& filter) {
  return text.find(filter) != std::string::npos;
}

bool is_wanted(const ConnectionRow& row, const std::string& filter) {
  const stats::Connection& c = row.connection;
  return filter.empty() || has(row.device, filter) || has(c.peer, filter) ||
         has(c.peer_host, filter) || has(c.state, filter) || has(text_of(c.waiting), filter) ||
         has(std::to_string(row.pid), filter);
}

void add_process(const Page& page, const Window& window, Rows& rows) {
  ProcessRow row;
  row.process = page.snapshot.process;
  row.state = page.state;
  row.devices = page.snapshot.devices.size();
  row.connections = page.snapshot.connections.size() + row.process.connections_unlisted;
  if (row.process.is_running || !window.has_before()) {
    row.send_rate = window.rate(Counter::kSentBytes);
    row.receive_rate = window.rate(Counter::kReceivedBytes);
  }
  row.late_turns = window.count(Counter::kLateTurns);
  if (window.seconds() > 0)
    row.throttled_share = static_cast<double>(window.throttled_ns()) / 1e9 / window.seconds();
  rows.processes.push_back(std::move(row));
}

void add_devices(const Page& page, const Window& window, const std::string& filter, Rows& rows) {
  std::map<std::uint32_t, Loss> losses;
  for (const stats::Flow& flow : page.snapshot.flows)
    if (const stats::Connection* c = window.connection_of(flow))
      losses[c->device].add(window, flow);
  for (const stats::Device& device : page.snapshot.devices) {
    DeviceRow row;
    row.pid = page.snapshot.process.pid;
    row.device = device;
    for (const stats::Lane& lane : page.snapshot.lanes) {
      if (lane.device != device.index) continue;
      ++row.lanes;
      row.connections += lane.connections;
      row.queue_depth += lane.queue_depth;
    }
    row.send_rate = window.rate(device, Counter::kSentBytes);
    row.receive_rate = window.rate(device, Counter::kReceivedBytes);
    row.loss_share = losses[device.index].share();
    row.timeouts = window.count(device, Counter::kTimeoutRetransmissions) +
                   window.count(device, Counter::kNoAnswers);
    for (const Counter drops : {Counter::kRxNoMemory, Counter::kTxDropped, Counter::kNicRxMissed,
                                Counter::kNicRxErrors, Counter::kNicTxErrors})
      row.dropped += window.count(device, drops);
    if (filter.empty() || has(device.name, filter) || has(device.nic, filter) ||
        has(std::to_string(row.pid), filter))
      rows.devices.push_back(std::move(row));
  }
}

void add_connections(const Page& page, const Window& window, const std::string& filter,
                     Rows& rows) {
  std::map<std::uint64_t, std::vector<const stats::Flow*>> flows;
  for (const stats::Flow& flow : page.snapshot.flows) flows[flow.connection].push_back(&flow);
  for (const stats::Connection& connection : page.snapshot.connections) {
    ConnectionRow row;
    row.key = {page.file.string(), connection.id};
    row.pid = page.snapshot.process.pid;
    const stats::Device* device = device_of(page.snapshot, connection.device);
    row.device = device == nullptr ? std::to_string(connection.device) : device->name;
    row.connection = connection;
    row.rate = window.progress(connection).bytes_per_second();
    Loss loss;
    for (const stats::Flow* flow : flows[connection.id]) {
      ++row.flows;
      row.lost_flows += is_lost_rail(*flow) ? 1 : 0;
      row.rtt_p50_ns = std::max(row.rtt_p50_ns, flow->rtt_p50_ns ? flow->rtt_p50_ns : flow->rtt_ns);
      row.rtt_p99_ns = std::max(row.rtt_p99_ns, flow->rtt_p99_ns);
      row.cwnd_bytes += flow->cwnd_bytes;
      row.in_flight_bytes += flow->in_flight_bytes;
      loss.add(window, *flow);
      const stats::Flow* then = window.before(*flow);
      row.timeouts += growth(flow->timeouts, then ? then->timeouts : 0);
    }
    row.loss_share = loss.share();
    row.badness = badness_of(row);
    if (is_wanted(row, filter)) rows.connections.push_back(std::move(row));
  }
}

// True if `a` stands before `b`; the worst, largest or alphabetically first.
bool stands_before(const ConnectionRow& a, const ConnectionRow& b, Sort sort) {
  switch (sort) {
    case Sort::kWorst:
      return std::pair(a.badness, a.rate) > std::pair(b.badness, b.rate);
    case Sort::kRate:
      return a.rate > b.rate;
    case Sort::kRtt:
      return std::pair(a.rtt_p99_ns, a.rtt_p50_ns) > std::pair(b.rtt_p99_ns, b.rtt_p50_ns);
    case Sort::kLosses:
      return std::pair(a.loss_share, a.timeouts) > std::pair(b.loss_share, b.timeouts);
    case Sort::kWait:
      return a.connection.progress_ns > b.connection.progress_ns;
    case Sort::kPeer:
      return peer_name(a.connection) < peer_name(b.connection);
  }
  return false;
}

}  // namespace

const char* name_of(Sort sort) {
  switch (sort) {
    case Sort::kWorst:
      return "worst";
    case Sort::kRate:
      return "rate";
    case Sort::kRtt:
      return "rtt";
    case Sort::kLosses:
      return "losses";
    case Sort::kWait:
      return "wait";
    case Sort::kPeer:
      return "peer";
  }
  return "";
}

const char* text_of(stats::Waiting waiting) {
  switch (waiting) {
    case stats::Waiting::kNothing:
      return "-";
    case stats::Waiting::kPeerData:
      return "peer's data";
    case stats::Waiting::kPeerReceive:
      return "peer's receive";
    case stats::Waiting::kNetwork:
      return "network";
    case stats::Waiting::kApplication:
      return "application";
    case stats::Waiting::kPeerWindow:
      return "peer's window";
    case stats::Waiting::kConnecting:
      return "connect";
    case stats::Waiting::kThisHost:
      return "own threads";
  }
  return "?";
}

const char* text_of(stats::Carrier carrier) {
  switch (carrier) {
    case stats::Carrier::kUserspaceTcp:
      return "userspace";
    case stats::Carrier::kKernelSockets:
      return "kernel";
    case stats::Carrier::kRdma:
      return "RDMA";
  }
  return "?";
}

const char* text_of(stats::LinkStatus link) {
  switch (link) {
    case stats::LinkStatus::kUnknown:
      return "-";
    case stats::LinkStatus::kUp:
      return "up";
    case stats::LinkStatus::kDown:
      return "down";
    case stats::LinkStatus::kLost:
      return "lost";
  }
  return "?";
}

Rows rows_of(const Look* before, const Look& after, Sort sort, const std::string& filter) {
  Rows rows;
  for (const Page& page : after.pages) {
    if (!page.error.empty()) {
      rows.damaged.push_back({page.file.string(), page.error});
      continue;
    }
    const Window window = window_of(page, before, after);
    add_process(page, window, rows);
    // Connections of the dead are shown when their page is looked at alone.
    if (!page.snapshot.process.is_running && before != nullptr) continue;
    add_devices(page, window, filter, rows);
    add_connections(page, window, filter, rows);
  }
  std::stable_sort(rows.processes.begin(), rows.processes.end(),
                   [](const ProcessRow& a, const ProcessRow& b) {
                     return std::pair(!a.process.is_running, a.process.rank) <
                            std::pair(!b.process.is_running, b.process.rank);
                   });
  std::stable_sort(rows.devices.begin(), rows.devices.end(),
                   [](const DeviceRow& a, const DeviceRow& b) {
                     const auto faults = [](const DeviceRow& row) {
                       return std::pair(row.device.link > stats::LinkStatus::kUp,
                                        row.loss_share + static_cast<double>(row.dropped));
                     };
                     return faults(a) > faults(b);
                   });
  std::stable_sort(
      rows.connections.begin(), rows.connections.end(),
      [sort](const ConnectionRow& a, const ConnectionRow& b) { return stands_before(a, b, sort); });
  return rows;
}

}  // namespace ztcp::stat
