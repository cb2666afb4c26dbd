// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/outcome.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ztcp::setup {
namespace {

const char* word_for(StepResult result) {
  switch (result) {
    case StepResult::kHeld:
      return "unchanged";
    case StepResult::kChanged:
      return "changed";
    case StepResult::kReverted:
      return "reverted";
    case StepResult::kFailed:
      break;
  }
  return "failed";
}

const char* word_for(RunKind kind) {
  switch (kind) {
    case RunKind::kSetUp:
      return "set-up";
    case RunKind::kAdd:
      return "add";
    case RunKind::kBoot:
      return "boot";
    case RunKind::kUndo:
      break;
  }
  return "undo";
}

std::string success(RunKind kind, const Outcome& outcome) {
  if (!outcome.success.empty()) return outcome.success;
  if (kind != RunKind::kUndo) return "setup successfully";
  if (outcome.steps.empty()) return "nothing to undo: set-up has changed nothing on this machine";
  return std::string("undo successfully: this machine is as it was before set-up") +
         (outcome.notes.empty() ? "" : ", except for the notes above");
}

std::string problems_text(const config::Problems& faults, const config::Problems& notes) {
  std::string text;
  for (const config::Problem& note : notes) {
    text += fmt::format("  note: {}: {}\n", note.where, note.what);
    if (!note.mend.empty()) text += fmt::format("    {}\n", note.mend);
  }
  for (const config::Problem& fault : faults) {
    text += fmt::format("  FAULT: {}: {}\n", fault.where, fault.what);
    if (!fault.mend.empty()) text += fmt::format("    mend: {}\n", fault.mend);
  }
  return text;
}

nlohmann::ordered_json problems_json(const config::Problems& faults,
                                     const config::Problems& notes) {
  auto json = nlohmann::ordered_json::array();
  const auto add = [&](const config::Problems& problems, const char* severity) {
    for (const config::Problem& problem : problems)
      json.push_back({{"where", problem.where},
                      {"what", problem.what},
                      {"mend", problem.mend},
                      {"severity", severity}});
  };
  add(faults, "fault");
  add(notes, "warning");
  return json;
}

// Output of programs may be invalid UTF-8, or cut within a character.
std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string last_line(const UndoPreview& preview) {
  if (!preview.faults.empty()) return "undo would be refused; nothing was changed";
  return preview.steps.empty() ? "nothing to undo: set-up has changed nothing on this machine"
                               : "This was a dry run: nothing was changed.";
}

}  // namespace

ExitCode exit_code(const Outcome& outcome) { return outcome.complete() ? kExitGood : kExitFaults; }

std::string last_line(RunKind kind, const Outcome& outcome) {
  if (outcome.complete()) return success(kind, outcome);
  const bool undo = kind == RunKind::kUndo;
  const std::string name = undo ? "undo" : "setup";
  if (outcome.stopped)
    return fmt::format("{} was stopped; {}", name,
                       undo ? "`sudo ztcp_setup --undo` reverts the rest"
                            : "`sudo ztcp_setup` continues, `sudo ztcp_setup --undo` reverts "
                              "the steps done");
  if (!outcome.changed()) return fmt::format("{} failed; nothing was changed", name);
  return fmt::format(
      "{} incomplete: {} fault{}; {}", name, outcome.faults.size(),
      outcome.faults.size() == 1 ? "" : "s",
      undo ? "correct them and run `sudo ztcp_setup --undo` again"
           : "correct them and run `sudo ztcp_setup` again, or revert the steps done: "
             "`sudo ztcp_setup --undo`");
}

std::string to_text(RunKind kind, const Outcome& outcome) {
  std::string text;
  const auto held = std::count_if(outcome.steps.begin(), outcome.steps.end(), [](const Step& step) {
    return step.result == StepResult::kHeld;
  });
  if (held > 0)
    text += fmt::format("  {} of {} steps: nothing to change\n", held, outcome.steps.size());
  text += problems_text(outcome.faults, outcome.notes);
  return text + last_line(kind, outcome) + "\n";
}

std::string to_json(RunKind kind, const Outcome& outcome) {
  nlohmann::ordered_json json{{"mode", word_for(kind)},
                              {"exit_code", exit_code(outcome)},
                              {"result", last_line(kind, outcome)},
                              {"stopped", outcome.stopped}};
  json["steps"] = nlohmann::ordered_json::array();
  for (const Step& step : outcome.steps)
    json["steps"].push_back({{"what", step.why}, {"result", word_for(step.result)}});
  json["problems"] = problems_json(outcome.faults, outcome.notes);
  return dumped(json);
}

ExitCode exit_code(const UndoPreview& preview) {
  return preview.faults.empty() ? kExitGood : kExitFaults;
}

std::string to_text(const UndoPreview& preview) {
  std::string text;
  if (!preview.steps.empty()) text += "Undo would revert, in this order:\n";
  for (const UndoPreview::Step& step : preview.steps)
    text += fmt::format("  {}\n      {}\n", step.why, step.then);
  return text + problems_text(preview.faults, preview.notes) + last_line(preview) + "\n";
}

std::string to_json(const UndoPreview& preview) {
  nlohmann::ordered_json json{
      {"mode", "undo-dry-run"}, {"exit_code", exit_code(preview)}, {"result", last_line(preview)}};
  json["steps"] = nlohmann::ordered_json::array();
  for (const UndoPreview::Step& step : preview.steps)
    json["steps"].push_back({{"what", step.why}, {"then", step.then}});
  json["problems"] = problems_json(preview.faults, preview.notes);
  return dumped(json);
}

}  // namespace ztcp::setup
