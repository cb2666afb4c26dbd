// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/why/diagnose.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

constexpr void (*kRules[])(const Case&, Findings&) = {
    find_stopped,       find_busy_host,    find_link_faults, find_frame_faults,
    find_strangers,     find_broken,       find_lost_rails,  find_losses,
    find_small_packets, find_zero_windows, find_waits,
};

}  // namespace

Findings diagnose(const Look* before, const Look& after) {
  Findings findings;
  std::vector<Case> cases;
  for (const Page& page : after.pages) {
    if (!page.error.empty()) continue;
    // Old pages of dead processes would fill the list; the crash itself is named. One that is
    // looked at alone is judged.
    if (!page.snapshot.process.is_running && before != nullptr) continue;
    cases.push_back({page, window_of(page, before, after), after.monotonic_ns, after.realtime_ns});
  }
  for (const Case& one : cases)
    for (const auto rule : kRules) rule(one, findings);
  find_slow_devices(cases, findings);
  find_slow_peers(cases, findings);
  find_crashes(after, findings);
  find_damaged_pages(after, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(b.severity, a.rule, b.weight) < std::tuple(a.severity, b.rule, a.weight);
  });
  return findings;
}

bool names_a_fault(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity >= Severity::kWarning; });
}

}  // namespace ztcp::stat
