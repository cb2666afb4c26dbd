// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Output of rank 0: a table with nccl-tests' times and their spread, and all results as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/spread.h"

namespace ztcp::perf {

struct RankInfo {
  std::string place;   // "host pid 123"
  std::string device;  // "0 ztcp0, 10000 Mb/s, no PCI path"
};

struct CpuSeconds {
  double user = 0;
  double system = 0;
};

struct Row {
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;
  int iters = 0;
  double time_us = 0;  // All iterations together / iters, mean over ranks.
  double algbw_gb_per_s = 0;
  double busbw_gb_per_s = 0;
  std::optional<std::uint64_t> wrong;  // Elements over all ranks; absent without --check.
  std::vector<CpuSeconds> cpu;         // By rank, for the timed iterations.
  std::optional<Spread> spread;        // For single iterations; absent on ranks other than 0.
};

class Report {
 public:
  Report(const Options& options, std::string plugin_name, int abi, std::vector<RankInfo> ranks);

  void begin();
  void add(Row row);
  void note(const std::string& text);
  // Prints the footers and writes the JSON. Returns the number of wrong elements.
  std::uint64_t end();

 private:
  void write_json() const;

  const Options& options_;
  std::string plugin_name_;
  int abi_;
  std::vector<RankInfo> ranks_;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;
  bool table_;  // False when stdout is for JSON.
};

}  // namespace ztcp::perf
