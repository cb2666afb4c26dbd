// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The meaning of a failed work completion, and its remedy, for log lines.
#pragma once

#include "core/result.h"
#include "transport/verbs/api.h"

namespace ztcp::verbs {

struct CompletionText {
  const char* name;    // "IBV_WC_RETRY_EXC_ERR"
  const char* words;   // "the peer's NIC did not answer"
  const char* advice;  // A remedy.
  Errc code;
};

CompletionText describe(ibv_wc_status status);

}  // namespace ztcp::verbs
