// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/mounts.h"

#include <sstream>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/parse.h"

namespace ztcp::setup {
namespace {

// With sizes of pages in bytes.
std::string comparable(const std::string& option) {
  constexpr std::string_view kPageSize = "pagesize=";
  if (!option.starts_with(kPageSize)) return option;
  const std::string size = option.substr(kPageSize.size());
  const std::string units = "KMGT";
  const auto unit = size.empty() ? std::string::npos : units.find(size.back());
  const auto number = number_of(unit == std::string::npos ? size : size.substr(0, size.size() - 1));
  if (!number) return option;
  return fmt::format("pagesize={}",
                     unit == std::string::npos ? *number : *number << (10 * (unit + 1)));
}

}  // namespace

bool Mounted::has(const std::string& option) const {
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');)
    if (comparable(word) == comparable(option)) return true;
  return false;
}

std::vector<Mounted> mounts_of(Host& host) {
  std::vector<Mounted> mounts;
  std::istringstream lines(host.read_value("/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Mounted mounted;
    for (int i = 0; i < 5; ++i) words >> mounted.folder;  // Its fifth field.
    std::string word;
    while (words >> word && word != "-") {
    }
    std::string source;
    words >> mounted.type >> source >> mounted.options;
    mounts.push_back(std::move(mounted));
  }
  return mounts;
}

}  // namespace ztcp::setup
