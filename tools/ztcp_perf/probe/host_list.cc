// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/host_list.h"

#include <cstddef>
#include <unordered_map>

#include "tools/common/printable.h"
#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::probe {

std::vector<std::string> parse_host_list(std::string_view text, const std::string& path) {
  constexpr const char* kBlanks = " \t\r";
  std::vector<std::string> hosts;
  std::unordered_map<std::string, std::size_t> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    line = line.substr(0, line.find('#'));
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) continue;
    line = line.substr(first, line.find_last_not_of(kBlanks) - first + 1);
    const std::string host(line);
    const std::string shown = tools::printable(host, 80);
    if (shown != host || line.find_first_of(kBlanks) != std::string_view::npos || host[0] == '-')
      fail("{}:{}: '{}' is not a host; each line has one name or address", path, number, shown);
    const auto [before, is_new] = lines.emplace(host, number);
    if (!is_new)
      fail("{}:{}: {} is listed in line {} already; a host is probed by one process", path, number,
           host, before->second);
    hosts.push_back(host);
  }
  if (hosts.size() < 2)
    fail("{}: has {} hosts; at least 2 are needed to measure anything", path, hosts.size());
  return hosts;
}

}  // namespace ztcp::perf::probe
