// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/merge.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

namespace ztcp::stat::hosts {
namespace {

// The results of one check on all hosts.
struct Row {
  Check first;
  std::vector<Value> values;
  std::unordered_map<std::string, std::size_t> places;  // Indices in values, by severity and text.
  std::size_t present = 0;
};

// A byte that no printable text contains.
constexpr char kBetween = '\0';

std::string value_key(const Check& check) {
  return std::string(name_of(check.severity)) + kBetween + check.what;
}

class Merger {
 public:
  explicit Merger(std::size_t hosts) : hosts_(hosts) {}

  void add(std::size_t host, const Report& report) {
    // A host may have several checks of one name and place: they are compared in their order.
    std::unordered_map<std::string, std::size_t> seen;
    for (const Check& check : report.checks) {
      const std::string key = check.name + kBetween + check.where;
      const std::size_t number = seen[key]++;
      Row& row = row_of(key + kBetween + std::to_string(number), check);
      const auto [place, is_new] = row.places.try_emplace(value_key(check), row.values.size());
      if (is_new) row.values.push_back({check.severity, check.what, {}});
      row.values[place->second].hosts.push_back(host);
      ++row.present;
    }
  }

  Merged take() {
    Merged merged;
    merged.checks = rows_.size();
    for (Row& row : rows_) {
      if (row.present == hosts_ && row.values.size() == 1) {
        if (row.first.severity != Severity::kGood) merged.common.push_back(std::move(row.first));
      } else {
        merged.differences.push_back(difference_of(row));
      }
    }
    std::ranges::stable_sort(merged.differences, std::ranges::greater{}, &Difference::worst);
    return merged;
  }

 private:
  Row& row_of(std::string key, const Check& check) {
    const auto [place, is_new] = places_.try_emplace(std::move(key), rows_.size());
    if (is_new) rows_.push_back({check, {}, {}, 0});
    return rows_[place->second];
  }

  Difference difference_of(Row& row) const {
    Difference difference{.name = std::move(row.first.name),
                          .where = std::move(row.first.where),
                          .worst = Severity::kGood,
                          .values = std::move(row.values),
                          .without = hosts_ - row.present,
                          .hosts_without = {}};
    for (const Value& value : difference.values)
      difference.worst = std::max(difference.worst, value.severity);
    std::ranges::stable_sort(difference.values, std::ranges::greater{},
                             [](const Value& value) { return value.hosts.size(); });
    // Listed only where most hosts have the check, so that all lists together are not longer than
    // the reports.
    if (difference.without > 0 && difference.without < row.present) {
      std::vector<bool> has(hosts_);
      for (const Value& value : difference.values)
        for (const std::size_t host : value.hosts) has[host] = true;
      for (std::size_t host = 0; host < hosts_; ++host)
        if (!has[host]) difference.hosts_without.push_back(host);
    }
    return difference;
  }

  std::size_t hosts_;
  std::vector<Row> rows_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

Merged merge(const std::vector<Report>& reports) {
  Merger merger(reports.size());
  for (std::size_t host = 0; host < reports.size(); ++host) merger.add(host, reports[host]);
  Merged merged = merger.take();
  for (const Report& report : reports) merged.hosts.push_back(report.host);
  return merged;
}

}  // namespace ztcp::stat::hosts
