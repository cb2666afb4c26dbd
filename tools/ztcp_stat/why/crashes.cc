// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Processes that died, and pages that can't be read.
#include <algorithm>

#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

// Ranks of a job start within this time; one may die before its page is refreshed.
constexpr std::int64_t kStartOfJobNs = 60'000'000'000;

}  // namespace

void find_crashes(const Look& look, Findings& findings) {
  std::int64_t newest_start = 0;  // A death before the running job began belongs to another job.
  for (const Page& page : look.pages)
    if (page.error.empty() && page.snapshot.process.is_running)
      newest_start = std::max(newest_start, page.snapshot.process.started_realtime_ns);
  for (const Page& page : look.pages) {
    const stats::Process& process = page.snapshot.process;
    if (!page.error.empty() || process.is_running || process.has_ended_cleanly) continue;
    if (std::max(process.updated_realtime_ns, process.started_realtime_ns + kStartOfJobNs) <
        newest_start)
      continue;
    const std::int64_t ago =
        std::max<std::int64_t>(look.realtime_ns - process.updated_realtime_ns, 0);
    findings.push_back(
        {Severity::kSevere, Rule::kCrashed, process_name(process),
         fmt::format("died {} ago without ending: killed, crashed, out of memory or _exit()",
                     time_text(static_cast<std::uint64_t>(ago))),
         fmt::format("ztcp_stat --after-crash {}; dmesg | grep -i kill", page.file.string()),
         -static_cast<double>(ago)});
  }
}

void find_damaged_pages(const Look& look, Findings& findings) {
  for (const Page& page : look.pages)
    if (!page.error.empty())
      findings.push_back({Severity::kNote, Rule::kDamagedPage, page.file.string(),
                          fmt::format("can't be read: {}", page.error), "", 0});
}

}  // namespace ztcp::stat
