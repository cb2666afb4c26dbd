// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The check's conclusion and its text. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/ztcp_perf/job/facts.h"
#include "tools/ztcp_perf/job/measure.h"

namespace ztcp::perf::job {

struct Verdict {
  bool is_good = false;  // NCCL of every rank will use ztcp, the same one.
  std::string sentence;
};

// `measured` is absent where a rank's plugin has not started.
Verdict judge(const std::vector<RankFacts>& ranks, const std::optional<Measured>& measured);

// The lines before the measurement: transports, and what NCCL will use.
std::string render_ranks(const std::vector<RankFacts>& ranks);
std::string render_measured(const std::vector<RankFacts>& ranks, const std::vector<int>& members,
                            const Measured& measured);

nlohmann::json document_of(const std::vector<RankFacts>& ranks, const std::vector<int>& members,
                           const std::optional<Measured>& measured, const Verdict& verdict);

double median_of(std::vector<double> values);

}  // namespace ztcp::perf::job
