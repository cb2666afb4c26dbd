// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The lines by which a rank and rank 0 prove to each other that they know the run's secret. Pure.
//   rank 0  {"challenge": "..."}
//   rank    {"ztcp_probe": 1, "rank": 1, "ranks": 4, "host": "gpu2", "nonce": "...", "proof":
//   "..."} rank 0  {"admit": "..."} or {"refuse": "..."}
#pragma once

#include <string>

#include "tools/ztcp_perf/probe/messages.h"
#include "tools/ztcp_perf/secret.h"

namespace ztcp::perf::probe {

Json make_challenge(const Nonce& challenge);
// A rank's answer to rank 0's line. Throws Failure if it is not a challenge.
Json answer_challenge(const Json& line, const std::string& secret, int rank, int ranks,
                      const std::string& host, const Nonce& nonce);

struct Caller {
  int rank = 0;
  std::string host;
  std::string refusal;  // The reason why it is not a rank of this run.
  Json admission;       // The line for it.
};
// Rank 0's judgement of an answer.
Caller judge_answer(const Json& line, const std::string& secret, int ranks, const Nonce& challenge);
// Throws Failure with the reason unless rank 0 proved the secret.
void check_admission(const Json& line, const std::string& secret, const Json& challenge_line,
                     const Nonce& nonce);

}  // namespace ztcp::perf::probe
