// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Processes of this host whose threads do not run: stopped, or frozen with their cgroup.
#include <algorithm>

#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

// Lanes with posted messages are refreshed several times a second.
constexpr std::int64_t kNoRefreshNs = 2'000'000'000;

bool has_work(const stats::Snapshot& snapshot) {
  return std::any_of(snapshot.lanes.begin(), snapshot.lanes.end(),
                     [](const stats::Lane& lane) { return lane.queue_depth > 0; }) ||
         std::any_of(snapshot.connections.begin(), snapshot.connections.end(),
                     [](const stats::Connection& c) { return c.messages_in_flight > 0; });
}

}  // namespace

void find_stopped(const Case& one, Findings& findings) {
  if (!one.is_running()) return;
  const stats::Process& process = one.now().process;
  const std::int64_t age =
      std::max<std::int64_t>(one.now_monotonic_ns - process.updated_monotonic_ns, 0);
  const auto age_ns = static_cast<std::uint64_t>(age);
  if (one.page.state == 'T' || one.page.state == 't') {
    const bool is_traced = one.page.state == 't';
    findings.push_back({Severity::kSevere, Rule::kStopped, process_name(process),
                        fmt::format("is stopped {} (state {}), for {}: all its peers wait for it",
                                    is_traced ? "by a debugger" : "by a signal", one.page.state,
                                    time_text(age_ns)),
                        is_traced ? fmt::format("grep TracerPid /proc/{}/status", process.pid)
                                  : fmt::format("kill -CONT {}", process.pid),
                        static_cast<double>(age)});
    return;
  }
  // Without messages the threads may sleep.
  if (age < kNoRefreshNs || !has_work(one.now())) return;
  findings.push_back(
      {Severity::kSevere, Rule::kStopped, process_name(process),
       fmt::format("has posted messages, and its threads have not run for {}: it is frozen with "
                   "its cgroup, waits for a disk or gets no CPU (state {})",
                   time_text(age_ns), one.page.state),
       fmt::format("grep -E 'State|ctxt' /proc/{}/status", process.pid), static_cast<double>(age)});
}

}  // namespace ztcp::stat
