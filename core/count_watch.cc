// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/count_watch.h"

#include <algorithm>

#include <fmt/format.h>

namespace ztcp {

std::string describe(const CountFinding& finding, const CountedEvent& event,
                     const std::string& advice) {
  std::string parts;
  for (const CountFinding::Part& part : finding.parts())
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.count, part.name);
  const auto span = std::chrono::duration_cast<std::chrono::seconds>(finding.span);
  return fmt::format("{} {} {} in {} s ({}): {}", event.verb, finding.total(), event.objects,
                     std::max<std::int64_t>(span.count(), 1), parts, advice);
}

}  // namespace ztcp
