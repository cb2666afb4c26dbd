// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// This rank's part of the check: opens the plugin as NCCL would, starts it, and describes it.
#pragma once

#include <memory>

#include "tools/ztcp_perf/job/facts.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::perf::job {

class LocalPlugin {
 public:
  // Takes over the variables of NCCL's files, as NCCL does.
  explicit LocalPlugin(const Options& options);
  // Also finalizes after a failed init, as NCCL does.
  ~LocalPlugin();
  LocalPlugin(const LocalPlugin&) = delete;
  LocalPlugin& operator=(const LocalPlugin&) = delete;

  const RankFacts& facts() const { return facts_; }
  // Only if facts().has_started.
  Net& net() { return *net_; }

 private:
  void open(const Options& options);
  void start(const Options& options);

  RankFacts facts_;
  std::unique_ptr<Net> net_;  // Null: no library of ztcp's was found.
};

// The last warning that the plugin has logged, without its prefix; empty: none.
std::string last_warning();

}  // namespace ztcp::perf::job
