// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/report.h"

#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/common/atomic_file.h"
#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

const char* type_of(Op op) { return op == Op::kAllReduce ? "float" : "uint32"; }
const char* reduction_of(Op op) { return op == Op::kAllReduce ? "sum" : "none"; }

template <class... Args>
void line(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::puts(text.c_str());
  std::fflush(stdout);  // Rows appear as they are measured, also through a pipe.
}

CpuSeconds total(const std::vector<CpuSeconds>& ranks) {
  CpuSeconds sum;
  for (const CpuSeconds& cpu : ranks) {
    sum.user += cpu.user;
    sum.system += cpu.system;
  }
  return sum;
}

}  // namespace

Report::Report(const Options& options, std::string plugin_name, int abi,
               std::vector<RankInfo> ranks)
    : options_(options),
      plugin_name_(std::move(plugin_name)),
      abi_(abi),
      ranks_(std::move(ranks)),
      table_(options.json != "-") {}

void Report::begin() {
  if (!table_) return;
  line("# ztcp_perf " ZTCP_VERSION ": {} over {} ranks, plugin {} (v{}) {}", name_of(options_.op),
       ranks_.size(), plugin_name_, abi_, options_.plugin);
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    line("#   rank {:2} on {}, device {}", i, ranks_[i].place, ranks_[i].device);
  line("#");
  const std::string ping =
      options_.op == Op::kPing ? fmt::format(" {:>9} {:>9}", "p50", "p99") : "";
  const std::string ping_units =
      options_.op == Op::kPing ? fmt::format(" {:>9} {:>9}", "(us)", "(us)") : "";
  line("#{:>12} {:>12} {:>8} {:>6} {:>11} {:>8} {:>8} {:>7}{} {:>7} {:>9}", "size", "count", "type",
       "redop", options_.op == Op::kPing ? "half trip" : "time", "algbw", "busbw", "#wrong", ping,
       "iters", "cpu");
  line("#{:>12} {:>12} {:>8} {:>6} {:>11} {:>8} {:>8} {:>7}{} {:>7} {:>9}", "(B)", "(elements)", "",
       "", "(us)", "(GB/s)", "(GB/s)", "", ping_units, "", "(s)");
}

void Report::add(Row row) {
  if (table_) {
    const CpuSeconds cpu = total(row.cpu);
    const std::string ping =
        row.ping ? fmt::format(" {:9.2f} {:9.2f}", row.ping->p50, row.ping->p99) : "";
    line(" {:12} {:12} {:>8} {:>6} {:11.2f} {:8.3f} {:8.3f} {:>7}{} {:7} {:9.3f}", row.size_bytes,
         row.count, type_of(options_.op), reduction_of(options_.op), row.time_us,
         row.algbw_gb_per_s, row.busbw_gb_per_s,
         row.wrong ? std::to_string(*row.wrong) : std::string("N/A"), ping, row.iters,
         cpu.user + cpu.system);
  }
  rows_.push_back(std::move(row));
}

void Report::note(const std::string& text) {
  if (table_) line("# {}", text);
  notes_.push_back(text);
}

std::uint64_t Report::end() {
  std::uint64_t wrong = 0;
  double busbw = 0;
  for (const Row& row : rows_) {
    wrong += row.wrong.value_or(0);
    busbw += row.busbw_gb_per_s;
  }
  if (table_) {
    if (options_.check) {
      line("# Out of bounds values : {} {}", wrong, wrong == 0 ? "OK" : "FAILED");
    } else {
      line("# Out of bounds values : N/A (run with --check)");
    }
    line("# Avg bus bandwidth    : {:.4f}",
         rows_.empty() ? 0 : busbw / static_cast<double>(rows_.size()));
  }
  if (!options_.json.empty()) write_json();
  return wrong;
}

void Report::write_json() const {
  using nlohmann::json;
  json ranks = json::array();
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    ranks.push_back({{"rank", i}, {"place", ranks_[i].place}, {"device", ranks_[i].device}});
  json results = json::array();
  for (const Row& row : rows_) {
    const CpuSeconds cpu = total(row.cpu);
    json per_rank = json::array();
    for (const CpuSeconds& c : row.cpu)
      per_rank.push_back({{"user_s", c.user}, {"system_s", c.system}});
    json entry = {{"size_bytes", row.size_bytes},
                  {"count", row.count},
                  {"type", type_of(options_.op)},
                  {"redop", reduction_of(options_.op)},
                  {"iters", row.iters},
                  {"time_us", row.time_us},
                  {"algbw_gb_per_s", row.algbw_gb_per_s},
                  {"busbw_gb_per_s", row.busbw_gb_per_s},
                  {"wrong", row.wrong ? json(*row.wrong) : json(nullptr)},
                  {"cpu_seconds", cpu.user + cpu.system},
                  {"cpu_by_rank", per_rank}};
    if (row.ping)
      entry["half_round_trip_us"] = {{"min", row.ping->min},
                                     {"mean", row.ping->mean},
                                     {"p50", row.ping->p50},
                                     {"p99", row.ping->p99},
                                     {"max", row.ping->max}};
    results.push_back(std::move(entry));
  }
  std::uint64_t wrong = 0;
  for (const Row& row : rows_) wrong += row.wrong.value_or(0);
  const json document = {
      {"tool", "ztcp_perf"},
      {"version", ZTCP_VERSION},
      {"command", options_.command},
      {"plugin", {{"path", options_.plugin}, {"name", plugin_name_}, {"abi", abi_}}},
      {"op", name_of(options_.op)},
      {"checked", options_.check},
      {"wrong", wrong},
      {"ranks", ranks},
      {"results", results},
      {"notes", notes_}};
  const std::string text = document.dump(2) + "\n";
  if (options_.json == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  if (const Status written = tools::write_report(options_.json, text); !written)
    fail("--json {}: {}", options_.json,
         written.error().code == Errc::kRefused ? written.error().where
                                                : std::strerror(written.error().sys_errno));
}

}  // namespace ztcp::perf
