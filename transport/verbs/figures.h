// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Numbers that a connection counts for the statistics page, beside those of its session
// (session/tally.h). Written by the thread that uses the connection's traffic, read by any.
#pragma once

#include "transport/stats/counters.h"
#include "transport/verbs/api.h"
#include "transport/verbs/session/tally.h"

namespace ztcp::verbs {

struct Figures {
  Tally polls;        // Looks for completions by the comm's thread.
  Tally completions;  // Those below, too.
  Tally no_answers;
  Tally not_ready;
  Tally flushed;
  Tally access_errors;
  Tally other_errors;
  Tally gpu_flushes;

  // Counts a completion with an error by its kind.
  void note_error(ibv_wc_status status) {
    switch (status) {
      case IBV_WC_RETRY_EXC_ERR:
      case IBV_WC_RESP_TIMEOUT_ERR:
        return no_answers.add();
      case IBV_WC_RNR_RETRY_EXC_ERR:
        return not_ready.add();
      case IBV_WC_WR_FLUSH_ERR:
        return flushed.add();
      case IBV_WC_LOC_PROT_ERR:
      case IBV_WC_LOC_ACCESS_ERR:
      case IBV_WC_REM_ACCESS_ERR:
        return access_errors.add();
      default:
        return other_errors.add();
    }
  }
  // Adds them to those of other connections.
  void add_to(stats::CounterValues& sums) const {
    using stats::Counter;
    sums[Counter::kCompletions] += completions.value();
    sums[Counter::kNoAnswers] += no_answers.value();
    sums[Counter::kNotReady] += not_ready.value();
    sums[Counter::kFlushedWork] += flushed.value();
    sums[Counter::kRefusedAccess] += access_errors.value();
    sums[Counter::kOtherWorkErrors] += other_errors.value();
    sums[Counter::kGpuFlushes] += gpu_flushes.value();
  }
};

}  // namespace ztcp::verbs
