// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/problem.h"

namespace ztcp::config {

std::string to_string(const Problem& problem) {
  std::string text;
  if (!problem.where.empty()) text += problem.where + ": ";
  text += problem.what;
  if (!problem.mend.empty()) text += "; mend: " + problem.mend;
  return text;
}

}  // namespace ztcp::config
