// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The frame of every process that is one rank: it meets the others, works, and reports its own
// failure and that of others once.
#pragma once

#include <functional>
#include <memory>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/options.h"

namespace ztcp::perf {

// Everything with a teardown, so that a failure is reported before teardown begins.
class RankWork {
 public:
  RankWork() = default;
  virtual ~RankWork() = default;
  RankWork(const RankWork&) = delete;
  RankWork& operator=(const RankWork&) = delete;
  // Returns an exit code.
  virtual int run() = 0;
};

// Returns an exit code; reports failures itself, as "PROGRAM: rank 1: ...".
int run_as_rank(const Options& options, const char* program,
                const std::function<std::unique_ptr<RankWork>(Bootstrap&)>& make_work);

}  // namespace ztcp::perf
