// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Differences between the reports of many hosts. Pure; its time and memory are proportional to the
// size of the reports.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/ztcp_stat/hosts/report.h"

namespace ztcp::stat::hosts {

// Hosts with one result of a check.
struct Value {
  Severity severity = Severity::kGood;
  std::string what;
  std::vector<std::size_t> hosts;
};

// One check that is not equal on all hosts.
struct Difference {
  std::string name;
  std::string where;
  Severity worst = Severity::kGood;
  std::vector<Value> values;  // The most frequent first.
  std::size_t without = 0;    // Number of hosts without this check.
  // Those hosts, if they are fewer than the others.
  std::vector<std::size_t> hosts_without;
};

struct Merged {
  std::vector<std::string> hosts;
  std::size_t checks = 0;               // Different ones.
  std::vector<Difference> differences;  // The worst first, else in the order of the reports.
  std::vector<Check> common;            // Warnings and faults that are equal on all hosts.
};

Merged merge(const std::vector<Report>& reports);

}  // namespace ztcp::stat::hosts
