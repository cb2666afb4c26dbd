// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/screen.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "core/counted.h"
#include "tools/ztcp_stat/view/table.h"
#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

constexpr std::size_t kAllRows = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kDeviceRows = 8;   // On a terminal; connections need the room.
constexpr std::size_t kProcessRows = 8;  // Likewise.

std::string clock_text(std::int64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm fields{};
  localtime_r(&seconds, &fields);
  char text[16] = "";
  const std::size_t length = std::strftime(text, sizeof text, "%H:%M:%S", &fields);
  return {text, length};
}

std::string or_dash(bool is_there, std::string text) { return is_there ? text : "-"; }

Cell losses_cell(double share) {
  return {or_dash(share > 0, share_text(share)), share >= 0.01     ? Mark::kBad
                                                 : share >= 0.0005 ? Mark::kWarning
                                                                   : Mark::kPlain};
}

Cell count_cell(std::uint64_t count, Mark mark) {
  return {or_dash(count > 0, count_text(count)), count > 0 ? mark : Mark::kPlain};
}

std::string state_text(const ProcessRow& row) {
  if (!row.process.is_running) return row.process.has_ended_cleanly ? "ended" : "died";
  if (row.state == 'T') return "stopped";
  if (row.state == 't') return "traced";
  return "running";
}

Table process_table(const Rows& rows) {
  Table table({{"PID", true},
               {"RANK", true},
               {"COMMAND", false, 16},
               {"STATE"},
               {"UP", true},
               {"CONNECTIONS", true},
               {"SEND", true},
               {"RECEIVE", true},
               {"LATE", true},
               {"THROTTLED", true},
               {"DESCRIPTORS", true},
               {"VERSION"}});
  for (const ProcessRow& row : rows.processes) {
    const stats::Process& p = row.process;
    const std::string state = state_text(row);
    const double full = p.descriptors_limit == 0
                            ? 0
                            : static_cast<double>(p.descriptors_open) / p.descriptors_limit;
    const auto up = static_cast<double>(p.updated_realtime_ns - p.started_realtime_ns) / 1e9;
    table.add({{std::to_string(p.pid)},
               {p.rank < 0     ? "-"
                : p.ranks <= 0 ? std::to_string(p.rank)
                               : fmt::format("{}/{}", p.rank, p.ranks)},
               {p.command},
               {state, state == "running" ? Mark::kGood
                       : state == "ended" ? Mark::kFaint
                                          : Mark::kBad},
               {or_dash(up >= 1, seconds_text(up))},
               {std::to_string(row.connections)},
               {rate_text(row.send_rate)},
               {rate_text(row.receive_rate)},
               count_cell(row.late_turns, Mark::kWarning),
               {or_dash(row.throttled_share > 0, share_text(row.throttled_share)),
                row.throttled_share >= 0.01 ? Mark::kBad : Mark::kPlain},
               {fmt::format("{}/{}", p.descriptors_open, p.descriptors_limit),
                full >= 0.9 ? Mark::kBad : Mark::kPlain},
               {p.version}});
  }
  return table;
}

Table device_table(const Rows& rows) {
  Table table({{"PID", true},
               {"DEVICE", false, 16},
               {"NIC", false, 16},
               {"CARRIER"},
               {"LINK"},
               {"SPEED", true},
               {"MTU", true},
               {"LANES", true},
               {"CONNECTIONS", true},
               {"QUEUED", true},
               {"SEND", true},
               {"RECEIVE", true},
               {"LOST", true},
               {"TIMEOUTS", true},
               {"DROPPED", true},
               {"ADDRESS", false, 36},
               {"NUMA", true},
               {"GPU", false, 44}});
  for (const DeviceRow& row : rows.devices) {
    const stats::Device& d = row.device;
    table.add({{std::to_string(row.pid)},
               {d.name},
               {or_dash(!d.nic.empty(), d.nic)},
               {text_of(d.carrier)},
               {text_of(d.link), d.link > stats::LinkStatus::kUp ? Mark::kBad : Mark::kPlain},
               {or_dash(d.speed_mbps > 0, rate_text(d.speed_mbps * 1e6 / 8))},
               {or_dash(d.mtu_bytes > 0, std::to_string(d.mtu_bytes))},
               {std::to_string(row.lanes)},
               {std::to_string(row.connections)},
               {std::to_string(row.queue_depth)},
               {rate_text(row.send_rate)},
               {rate_text(row.receive_rate)},
               losses_cell(row.loss_share),
               count_cell(row.timeouts, Mark::kWarning),
               count_cell(row.dropped, Mark::kBad),
               {or_dash(!d.address.empty(), d.address)},
               {or_dash(d.numa_node >= 0, std::to_string(d.numa_node))},
               {or_dash(!d.gpu.empty(), d.gpu)}});
  }
  return table;
}

Cell waiting_cell(const stats::Connection& c) {
  const Mark mark = c.is_stalled ? Mark::kBad : c.is_slow ? Mark::kWarning : Mark::kPlain;
  return {text_of(c.waiting), mark};
}

Table connection_table(const Rows& rows, const History* history, const Choice& choice,
                       const Style& style) {
  std::vector<Column> columns = {{"PID", true}, {"DEVICE", false, 16}, {"PEER", false, 36}, {"WAY"},
                                 {"STATE"},     {"RATE", true}};
  const bool has_sparklines = history != nullptr && history->has_several();
  if (has_sparklines) columns.push_back({"LAST RATES"});
  for (Column column : {Column{"WAITS FOR"}, Column{"SINCE", true}, Column{"RTT P50", true},
                        Column{"P99", true}, Column{"LOST", true}, Column{"TIMEOUTS", true},
                        Column{"IN FLIGHT", true}, Column{"CWND", true}, Column{"FLOWS", true}})
    columns.push_back(std::move(column));
  Table table(std::move(columns));
  for (std::size_t i = choice.first_row; i < rows.connections.size(); ++i) {
    const ConnectionRow& row = rows.connections[i];
    const stats::Connection& c = row.connection;
    std::vector<Cell> cells = {{std::to_string(row.pid)},
                               {row.device},
                               {peer_name(c)},
                               {c.way == stats::Way::kSend ? "send" : "receive"},
                               {c.state, c.state == "failed" ? Mark::kBad : Mark::kPlain},
                               {rate_text(row.rate)}};
    if (has_sparklines) cells.push_back({history->sparkline_of(row.key, style.is_unicode)});
    for (Cell cell :
         {waiting_cell(c), Cell{or_dash(c.progress_ns >= 1'000'000, time_text(c.progress_ns))},
          Cell{or_dash(row.rtt_p50_ns > 0, time_text(row.rtt_p50_ns))},
          Cell{or_dash(row.rtt_p99_ns > 0, time_text(row.rtt_p99_ns))}, losses_cell(row.loss_share),
          count_cell(row.timeouts, Mark::kWarning),
          Cell{or_dash(row.in_flight_bytes > 0, bytes_text(row.in_flight_bytes))},
          Cell{or_dash(row.cwnd_bytes > 0, bytes_text(row.cwnd_bytes))},
          row.lost_flows == 0
              ? Cell{std::to_string(row.flows)}
              : Cell{fmt::format("{}/{}", row.flows - row.lost_flows, row.flows), Mark::kBad}})
      cells.push_back(std::move(cell));
    table.add(std::move(cells));
  }
  return table;
}

std::string header_of(const Look* before, const Look& after, const Rows& rows,
                      const Choice& choice) {
  std::set<std::string> hosts;
  for (const ProcessRow& row : rows.processes) hosts.insert(row.process.host);
  std::string text = "ztcp_stat";
  if (hosts.size() == 1 && !hosts.begin()->empty()) text += " on " + *hosts.begin();
  text += fmt::format(
      ", {}: {}, {}, {}", clock_text(after.realtime_ns),
      counted(rows.processes.size(), rows.processes.size() == 1 ? "process" : "processe"),
      counted(rows.devices.size(), "device"), counted(rows.connections.size(), "connection"));
  if (before != nullptr)
    text += fmt::format(
        "; rates of {}",
        seconds_text(static_cast<double>(after.monotonic_ns - before->monotonic_ns) / 1e9));
  else
    text += "; rates since the start";
  text += fmt::format("; sorted by {}", name_of(choice.sort));
  if (!choice.filter.empty() || choice.is_typing)
    text += fmt::format("; filter: {}{}", choice.filter, choice.is_typing ? "_" : "");
  return text;
}

void append(std::vector<std::string>& lines, const Table& table, std::size_t most_rows,
            const Style& style) {
  if (table.rows() == 0) return;
  lines.emplace_back();
  for (std::string& line : table.lines(style.width, most_rows, style.has_colour))
    lines.push_back(std::move(line));
  if (table.rows() > most_rows)
    lines.push_back(marked(fmt::format("... and {} more", table.rows() - most_rows), Mark::kFaint,
                           style.has_colour));
}

}  // namespace

void History::add(const Rows& rows) {
  std::map<ConnectionKey, std::deque<double>> next;
  for (const ConnectionRow& row : rows.connections) {
    std::deque<double> rates;
    if (const auto known = rates_.find(row.key); known != rates_.end())
      rates = std::move(known->second);
    rates.push_back(row.rate);
    if (rates.size() > kLooks) rates.pop_front();
    next.emplace(row.key, std::move(rates));
  }
  rates_ = std::move(next);
  ++looks_;
}

std::string History::sparkline_of(const ConnectionKey& key, bool is_unicode) const {
  const auto known = rates_.find(key);
  if (known == rates_.end()) return "";
  return sparkline(std::vector<double>(known->second.begin(), known->second.end()), is_unicode);
}

std::vector<std::string> screen_of(const Look* before, const Look& after, const Rows& rows,
                                   const Findings& findings, const History* history,
                                   const Choice& choice, const Style& style, bool keys) {
  const bool is_bounded = style.height > 0;
  const std::size_t width = style.width == 0 ? kAllRows : style.width;
  std::vector<std::string> lines;
  lines.push_back(
      marked(cut(header_of(before, after, rows, choice), width), Mark::kHeading, style.has_colour));
  if (!findings.empty()) {
    const Finding& worst = findings.front();
    const Mark mark = worst.severity == Severity::kSevere    ? Mark::kBad
                      : worst.severity == Severity::kWarning ? Mark::kWarning
                                                             : Mark::kFaint;
    std::string text = fmt::format("{}: {} {}", name_of(worst.severity), worst.subject, worst.text);
    if (findings.size() > 1)
      text += fmt::format(" (and {} more: ztcp_stat why)", findings.size() - 1);
    lines.push_back(marked(cut(text, width), mark, style.has_colour));
  }
  for (const DamagedRow& row : rows.damaged)
    lines.push_back(marked(cut(fmt::format("{}: {}", row.file, row.error), width), Mark::kBad,
                           style.has_colour));
  append(lines, process_table(rows), is_bounded ? kProcessRows : kAllRows, style);
  append(lines, device_table(rows), is_bounded ? kDeviceRows : kAllRows, style);
  std::size_t room = kAllRows;
  if (is_bounded) {
    // An empty line, the heading, "and N more", and the line of keys.
    const std::size_t used = lines.size() + 3 + (keys ? 1 : 0);
    room = style.height > used ? style.height - used : 1;
  }
  append(lines, connection_table(rows, history, choice, style), room, style);
  if (is_bounded && lines.size() + (keys ? 1 : 0) > style.height)
    lines.resize(style.height - (keys ? 1 : 0));
  if (keys) {
    while (lines.size() + 1 < style.height) lines.emplace_back();
    lines.push_back(marked(
        cut(choice.is_typing ? "type a filter, Enter: done, Esc: none"
                             : "q quit  s next sort  w worst  r rate  t rtt  l losses  p peer  "
                               "/ filter  arrows scroll  space look now",
            width),
        Mark::kFaint, style.has_colour));
  }
  return lines;
}

}  // namespace ztcp::stat
