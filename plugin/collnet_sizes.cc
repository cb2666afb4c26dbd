// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_sizes.h"

#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>

namespace ztcp::plugin {
namespace {

bool holds(CollnetRows rows, std::size_t row) { return (rows >> row & 1U) != 0; }

std::string size_text(std::size_t bytes) {
  constexpr std::size_t kMebibyte = 1U << 20U;
  return bytes % kMebibyte == 0 ? fmt::format("{} MiB", bytes >> 20U)
                                : fmt::format("{} KiB", bytes >> 10U);
}

struct Range {
  std::size_t least_bytes;
  std::size_t most_bytes;
};

std::string range_text(const Range& range) {
  const std::string least = size_text(range.least_bytes);
  return range.most_bytes == SIZE_MAX ? least + " and more"
                                      : fmt::format("{} to {}", least, size_text(range.most_bytes));
}

}  // namespace

CollnetRows collnet_rows(std::optional<TransportKind> network, reduce::Wire wire,
                         std::uint32_t speed_mbps) {
  CollnetRows rows = 0;
  for (std::size_t i = 0; i < kCollnetSizes.size(); ++i) {
    const CollnetSizes& row = kCollnetSizes[i];
    if (row.network == network && row.wire == wire && speed_mbps <= row.most_speed_mbps)
      rows |= CollnetRows{1} << i;
  }
  return rows;
}

bool have_size(CollnetRows rows, std::size_t ranks, std::size_t hosts, std::size_t bytes) {
  for (std::size_t i = 0; i < kCollnetSizes.size(); ++i) {
    const CollnetSizes& row = kCollnetSizes[i];
    if (holds(rows, i) && row.ranks == ranks && row.hosts == hosts && row.least_bytes <= bytes &&
        bytes <= row.most_bytes)
      return true;
  }
  return false;
}

std::uint32_t most_collnet_speed_mbps(TransportKind network, reduce::Wire wire) {
  std::uint32_t most = 0;
  for (const CollnetSizes& row : kCollnetSizes)
    if (row.network == network && row.wire == wire) most = std::max(most, row.most_speed_mbps);
  return most;
}

std::string sizes_text(CollnetRows rows) {
  std::map<std::size_t, std::vector<Range>> by_hosts;
  for (std::size_t i = 0; i < kCollnetSizes.size(); ++i) {
    if (!holds(rows, i)) continue;
    const CollnetSizes& row = kCollnetSizes[i];
    std::vector<Range>& ranges = by_hosts[row.hosts];
    if (!ranges.empty() && row.least_bytes <= ranges.back().most_bytes)
      ranges.back().most_bytes = std::max(ranges.back().most_bytes, row.most_bytes);
    else
      ranges.push_back({row.least_bytes, row.most_bytes});
  }
  std::vector<std::string> clauses;
  for (const auto& [hosts, ranges] : by_hosts) {
    std::vector<std::string> texts;
    std::ranges::transform(ranges, std::back_inserter(texts), range_text);
    clauses.push_back(
        fmt::format("{} between {} hosts with a rank each", fmt::join(texts, ", "), hosts));
  }
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace ztcp::plugin
