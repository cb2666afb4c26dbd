// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/report.h"

#include <array>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/common/atomic_file.h"
#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

const char* type_of(Op op) { return is_sum(op) ? "float" : "uint32"; }
const char* reduction_of(Op op) { return is_sum(op) ? "sum" : "none"; }

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

// A row of the table, 115 columns wide unless a size has more than 10 digits.
using Cells = std::array<std::string, 13>;
void print_row(char first, const Cells& cells) {
  constexpr std::array kWidths = {10, 10, 7, 7, 8, 8, 8, 8, 8, 6, 7, 7, 8};
  std::string text(1, first);
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += fmt::format("{}{:>{}}", i == 0 ? "" : " ", cells[i], kWidths[i]);
  line("{}", text);
}

// At least four digits, in at most eight columns up to 100 s.
std::string us_text(double us) {
  return fmt::format("{:.{}f}", us, us < 100 ? 2 : us < 10'000 ? 1 : 0);
}

nlohmann::json json_of(const Spread& spread) {
  using nlohmann::json;
  return {{"samples", spread.samples}, {"min", spread.min},
          {"mean", spread.mean},       {"p50", spread.p50},
          {"p99", spread.p99},         {"p99.9", spread.p999 ? json(*spread.p999) : json(nullptr)},
          {"max", spread.max},         {"cv", spread.variation}};
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
  line("#   {}, {}; time is of all iterations together, min to CV {}", type_of(options_.op),
       is_sum(options_.op) ? "sum" : "no reduction",
       options_.op == Op::kPing ? "of rank 0's half round trips"
                                : "of single ones (the rank that took longest)");
  line("#");
  const char* time = options_.op == Op::kPing ? "half trip" : "time";
  print_row('#', {"size", time, "algbw", "busbw", "min", "p50", "p99", "p99.9", "max", "CV",
                  "#wrong", "iters", "cpu"});
  print_row('#', {"(B)", "(us)", "(GB/s)", "(GB/s)", "(us)", "(us)", "(us)", "(us)", "(us)", "(%)",
                  "", "", "(s)"});
}

void Report::add(Row row) {
  if (table_) {
    const CpuSeconds cpu = total(row.cpu);
    const Spread spread = row.spread.value_or(Spread{});
    print_row(' ',
              {std::to_string(row.size_bytes), fmt::format("{:.2f}", row.time_us),
               fmt::format("{:.3f}", row.algbw_gb_per_s), fmt::format("{:.3f}", row.busbw_gb_per_s),
               us_text(spread.min), us_text(spread.p50), us_text(spread.p99),
               spread.p999 ? us_text(*spread.p999) : "-", us_text(spread.max),
               fmt::format("{:.1f}", spread.variation * 100),
               row.wrong ? std::to_string(*row.wrong) : "N/A", std::to_string(row.iters),
               fmt::format("{:.3f}", cpu.user + cpu.system)});
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
    if (row.spread)
      entry[options_.op == Op::kPing ? "half_round_trip_us" : "iteration_us"] =
          json_of(*row.spread);
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
    fail("{}", json_failure(options_.json, written.error()));
}

}  // namespace ztcp::perf
