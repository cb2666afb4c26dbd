// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/why.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/counted.h"
#include "tools/ztcp_stat/view/json.h"
#include "tools/ztcp_stat/view/table.h"
#include "tools/ztcp_stat/view/terminal.h"
#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/diagnose.h"

namespace ztcp::stat {
namespace {

struct WhyWishes {
  bool json = false;
  bool all = false;
  double seconds = 2.5;
};
constexpr std::size_t kMostFindings = 12;

// A process that ended cleanly says nothing about now.
std::size_t count_processes(const Look& look) {
  return static_cast<std::size_t>(
      std::count_if(look.pages.begin(), look.pages.end(), [](const Page& page) {
        return !page.error.empty() || page.snapshot.process.is_running ||
               !page.snapshot.process.has_ended_cleanly;
      }));
}

int report(const Look* before, const Look& after, const WhyWishes& wishes) {
  Findings findings = diagnose(before, after);
  const std::size_t all = findings.size();
  const int status = names_a_fault(findings) ? kExitFault : kExitHealthy;
  if (wishes.json) {
    const int written = write_view(json_of(findings).dump(2) + "\n");
    return written == 0 ? status : written;
  }
  if (!wishes.all && all > kMostFindings) findings.resize(kMostFindings);
  const double seconds =
      before == nullptr ? 0 : static_cast<double>(after.monotonic_ns - before->monotonic_ns) / 1e9;
  std::string text = text_of(findings, count_processes(after), seconds, may_colour());
  if (findings.size() < all)
    text += fmt::format("... and {} more: ztcp_stat why --all\n", all - findings.size());
  const int written = write_view(text);
  return written == 0 ? status : written;
}

int run_why(const Selection& selection, const WhyWishes& wishes) {
  catch_end_signals();
  const auto before = look_at(selection);
  if (!before) return kExitUsage;
  if (!selection.crash_file.empty()) {
    const Page& page = before->pages.front();
    if (page.error.empty()) return report(nullptr, *before, wishes);
    std::fprintf(stderr, "ztcp_stat: %s: %s\n", page.file.c_str(), page.error.c_str());
    return kExitUsage;
  }
  sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(wishes.seconds * 1e9)));
  end_by_signal();
  const auto after = look_at(selection);
  if (!after) return kExitUsage;
  if (count_processes(*after) == 0) {
    std::fprintf(
        stderr,
        "ztcp_stat: no process with ztcp runs here: if a job should, its log says why it "
        "does not use ztcp (NCCL_DEBUG=INFO, ZTCP_LOG=FILE), as for a host that lacks it\n");
    return kExitNothing;
  }
  return report(&*before, *after, wishes);
}

}  // namespace

std::string text_of(const Findings& findings, std::size_t processes, double seconds,
                    bool has_colour) {
  const std::string looked =
      fmt::format("{}{}", counted(processes, processes == 1 ? "process" : "processe"),
                  seconds > 0 ? fmt::format(", watched for {}", seconds_text(seconds)) : "");
  if (findings.empty()) return fmt::format("healthy: no fault is seen ({})\n", looked);
  std::string text;
  if (!names_a_fault(findings)) text = fmt::format("healthy: no fault is seen ({})\n", looked);
  for (const Finding& finding : findings) {
    const Mark mark = finding.severity == Severity::kSevere    ? Mark::kBad
                      : finding.severity == Severity::kWarning ? Mark::kWarning
                                                               : Mark::kFaint;
    text += fmt::format("{}: {} {}\n", marked(name_of(finding.severity), mark, has_colour),
                        marked(finding.subject, Mark::kHeading, has_colour), finding.text);
    if (!finding.command.empty()) text += fmt::format("    {}\n", finding.command);
  }
  return text;
}

void add_why(CLI::App& app, Command& command) {
  auto wishes = std::make_shared<WhyWishes>();
  CLI::App* why = app.add_subcommand(
      "why",
      "Names the slowest peer, flow or host and the reason. Exit status 0: healthy, 1: a "
      "fault is named, 3: nothing to look at");
  why->fallthrough();  // --pid, --folder, --config and --after-crash may stand behind it.
  why->add_flag("--json", wishes->json, "Print the findings as JSON");
  why->add_flag("--all", wishes->all, "Print all findings, not the worst 12");
  why->add_option("--seconds", wishes->seconds, "Time between the two looks, default 2.5")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  why->callback([&command, wishes] {
    command.run = [&command, wishes] { return run_why(command.selection, *wishes); };
  });
}

}  // namespace ztcp::stat
