// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/schema.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace ztcp::config {
namespace {

#include "config/schema_table.inc"

// Levenshtein distance, with one row.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::span<const Key> keys() { return kKeys; }
std::span<const Section> sections() { return kSections; }
std::span<const std::string_view> environment_names() { return kEnvironment; }

const Key* find_key(std::string_view section, std::string_view name) {
  const auto all = keys();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Key& key) {
    return key.section == section && key.name == name;
  });
  return it == all.end() ? nullptr : &*it;
}

bool is_for(const Key& key, std::string_view driver) {
  return key.drivers.empty() || lists(key.drivers, driver);
}

bool lists(std::string_view alternatives, std::string_view word) {
  while (!alternatives.empty()) {
    const auto bar = std::min(alternatives.find('|'), alternatives.size());
    if (alternatives.substr(0, bar) == word) return true;
    alternatives.remove_prefix(std::min(bar + 1, alternatives.size()));
  }
  return false;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  // Up to a third of the letters may differ; a suggestion with more would mislead. Words longer
  // than any name are not worth the quadratic comparison.
  if (word.size() > 64) return best;
  std::size_t limit = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    // Matches "mtu" with "mtu_bytes": the unit is missing.
    const bool without_unit = candidate.size() > word.size() + 1 && candidate.starts_with(word) &&
                              candidate[word.size()] == '_' && !word.empty();
    // Matches "TCP" with "tcp", and "Name" with "name".
    const bool in_capitals =
        std::equal(word.begin(), word.end(), candidate.begin(), candidate.end(),
                   [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
    const std::size_t distance = in_capitals    ? 0
                                 : without_unit ? 1
                                                : edit_distance(word, candidate);
    if (distance < limit) {
      limit = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace ztcp::config
