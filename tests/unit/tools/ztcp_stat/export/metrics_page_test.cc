// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// docs/metrics.md lists exactly the metrics that exist.
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tools/ztcp_stat/export/exposition.h"

namespace ztcp::stat {
namespace {

TEST(MetricsPageTest, ListsEachMetricWithItsTypeAndMeaningInOrder) {
  std::ifstream file(ZTCP_SOURCE "/docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::string table = "| metric | type | meaning |\n|---|---|---|\n";
  for (const MetricText& metric : all_metrics())
    table += fmt::format("| `{}` | {} | {} |\n", metric.name, metric.type, metric.help);
  EXPECT_TRUE(page.ends_with(table)) << "the page's last table should be:\n" << table;
}

}  // namespace
}  // namespace ztcp::stat
