// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/verdict.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ztcp::perf::job {
namespace {

// Within it two medians of a busy machine are equal.
constexpr double kNoise = 0.05;

using Value = std::function<std::string(const RankFacts&)>;

struct Group {
  std::string value;
  std::vector<int> ranks;
};

// In the order of the first ranks.
std::vector<Group> group(const std::vector<RankFacts>& ranks, const Value& value_of) {
  std::vector<Group> groups;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string value = value_of(ranks[rank]);
    auto found = std::ranges::find(groups, value, &Group::value);
    if (found == groups.end()) found = groups.insert(found, {value, {}});
    found->ranks.push_back(static_cast<int>(rank));
  }
  return groups;
}

std::string mend_of(const std::vector<RankFacts>& ranks, const Group& group) {
  const std::string& mend = ranks[static_cast<std::size_t>(group.ranks.front())].mend;
  return mend.empty() ? "" : "; " + mend;
}

// "gpu1, gpu2 (ranks 0-15)"
std::string names_of(const std::vector<RankFacts>& ranks, const std::vector<int>& members) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> hosts;
  for (const int rank : members)
    if (const std::string& host = ranks[static_cast<std::size_t>(rank)].host;
        std::ranges::find(hosts, host) == hosts.end())
      hosts.push_back(host);
  const std::size_t more = hosts.size() > kMost ? hosts.size() - kMost : 0;
  hosts.resize(hosts.size() - more);
  return fmt::format("{}{} ({})", fmt::join(hosts, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more), rank_list(members));
}

std::string transport_text(const RankFacts& rank) {
  if (!rank.has_started) return "no transport";
  constexpr std::size_t kMost = 4;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(rank.nics.size(), kMost));
  return fmt::format("{} on {}{}: {}", rank.transport,
                     fmt::join(rank.nics.begin(), rank.nics.begin() + shown, ", "),
                     rank.nics.size() > kMost ? " and more" : "", rank.reason);
}

std::string nccl_text(const RankFacts& rank) {
  const std::string set = rank.variables + "; ";
  if (!rank.problem.empty()) return set + "NCCL will NOT use ztcp";
  return fmt::format("{}NCCL will use {}, {} ({})", set, rank.library, rank.table, rank.digest);
}

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1ULL << 20U) return fmt::format("{} MiB", bytes >> 20U);
  return fmt::format("{} KiB", bytes >> 10U);
}

// "2.1 times as fast as", "14 % faster than".
std::string compared(double ratio) {
  if (ratio >= 2) return fmt::format("ztcp is {:.1f} times as fast as", ratio);
  if (ratio > 1 + kNoise) return fmt::format("ztcp is {:.0f} % faster than", (ratio - 1) * 100);
  if (ratio >= 1 - kNoise) return "ztcp is as fast as";
  return fmt::format("ztcp is {:.0f} % slower than", (1 - ratio) * 100);
}

// Whether each turn of the faster network beats the median of the slower one.
bool is_clear(const Measured& measured) {
  const double ours = median_of(measured.ours);
  const double plain = median_of(measured.plain);
  return ours > plain ? std::ranges::min(measured.ours) > plain
                      : std::ranges::min(measured.plain) > ours;
}

// The fewest CPUs that a rank has for itself.
int cpus_of_each(const std::vector<RankFacts>& ranks) {
  int fewest = ranks.front().cpus;
  for (const std::vector<int>& host : ranks_by_host(ranks))
    for (const int rank : host)
      fewest = std::min(fewest,
                        ranks[static_cast<std::size_t>(rank)].cpus / static_cast<int>(host.size()));
  return fewest;
}

std::string advice_for(const std::vector<RankFacts>& ranks, double ratio) {
  if (ratio >= 1 - kNoise) return "change nothing";
  if (const int cpus = cpus_of_each(ranks); cpus < 2)
    return fmt::format("give each rank at least 2 CPUs (--cpus-per-task); it has {}",
                       cpus == 0 ? "less than one" : "one");
  const bool bypasses = std::ranges::any_of(ranks, [](const RankFacts& rank) {
    return rank.transport.find("userspace TCP") != std::string::npos;
  });
  return bypasses ? "compare with ZTCP_TRANSPORT=sockets on all ranks, and run ztcp_stat why "
                    "during a job"
                  : "run ztcp_stat why during a job";
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

Verdict judge(const std::vector<RankFacts>& ranks, const std::optional<Measured>& measured) {
  for (const Group& one : group(ranks, [](const RankFacts& rank) { return rank.problem; }))
    if (!one.value.empty())
      return {false, fmt::format("NCCL of {} will not use ztcp: {}{}", names_of(ranks, one.ranks),
                                 one.value, mend_of(ranks, one))};
  const auto files =
      group(ranks, [](const RankFacts& rank) { return rank.version + " " + rank.digest; });
  if (files.size() > 1)
    return {false, fmt::format("the hosts have different files of ztcp: {} on {}, {} on {}; "
                               "install the same release on all",
                               files[0].value, names_of(ranks, files[0].ranks), files[1].value,
                               names_of(ranks, files[1].ranks))};
  if (!measured) return {false, "nothing was measured"};
  const double ratio = median_of(measured->ours) / median_of(measured->plain);
  const std::string where =
      ranks_by_host(ranks).size() > 1
          ? ""
          : " between ranks of one host, whose GPUs NCCL joins by memory instead; start it on "
            "several hosts to measure a network";
  const bool is_equal = std::abs(ratio - 1) <= kNoise;
  if (!is_equal && !is_clear(*measured))
    return {true, fmt::format("no clear difference between ztcp and plain kernel sockets{}; for "
                              "one, repeat it on idle hosts with --seconds 60",
                              where)};
  return {true, fmt::format("{} plain kernel sockets{}; {}", compared(ratio), where,
                            advice_for(ranks, ratio))};
}

std::string render_ranks(const std::vector<RankFacts>& ranks) {
  const std::size_t hosts = ranks_by_host(ranks).size();
  std::string text = fmt::format("ztcp_perf check-job {}: {} ranks on {} host{}\n",
                                 ranks.front().version, ranks.size(), hosts, hosts == 1 ? "" : "s");
  for (const Group& one : group(ranks, transport_text))
    text += fmt::format("{}: {}\n", names_of(ranks, one.ranks), one.value);
  const auto choices = group(ranks, nccl_text);
  for (const Group& one : choices)
    text += fmt::format("{}: {}\n", choices.size() == 1 ? "all ranks" : rank_list(one.ranks),
                        one.value);
  return text;
}

std::string render_measured(const std::vector<RankFacts>& ranks, const std::vector<int>& members,
                            const Measured& measured) {
  const auto row = [](const char* name, const std::vector<double>& rates) {
    const auto [least, most] = std::ranges::minmax(rates);
    return fmt::format("  {:<14} {:8.3f} GB/s ({:.3f} to {:.3f})", name, median_of(rates), least,
                       most);
  };
  return fmt::format("ring all-reduce of {} over {}, busbw, median of {} turns:\n{}\n{}, {}\n",
                     size_text(measured.size_bytes), rank_list(members), measured.ours.size(),
                     row("ztcp", measured.ours), row("plain sockets", measured.plain),
                     ranks[static_cast<std::size_t>(members.front())].plain_reason);
}

nlohmann::json document_of(const std::vector<RankFacts>& ranks, const std::vector<int>& members,
                           const std::optional<Measured>& measured, const Verdict& verdict) {
  nlohmann::json json = {{"tool", "ztcp_perf check-job"},    {"version", ranks.front().version},
                         {"good", verdict.is_good},          {"verdict", verdict.sentence},
                         {"ranks", nlohmann::json::array()}, {"ring", nullptr}};
  for (const RankFacts& rank : ranks) json["ranks"].push_back(to_json(rank));
  if (!measured) return json;
  const double ours = median_of(measured->ours);
  const double plain = median_of(measured->plain);
  json["ring"] = {{"ranks", members},
                  {"size_bytes", measured->size_bytes},
                  {"ztcp_busbw_gb_per_s", {{"median", ours}, {"turns", measured->ours}}},
                  {"plain_busbw_gb_per_s", {{"median", plain}, {"turns", measured->plain}}},
                  {"ratio", plain > 0 ? nlohmann::json(ours / plain) : nlohmann::json(nullptr)}};
  return json;
}

}  // namespace ztcp::perf::job
