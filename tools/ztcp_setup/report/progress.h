// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a run goes on the way, and what came of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/problem.h"

namespace ztcp::setup {

enum class StepResult : std::uint8_t { kHeld, kChanged, kReverted, kFailed };

struct Step {
  std::string why;  // The resource's own line.
  StepResult result = StepResult::kHeld;
};

struct Outcome {
  std::vector<Step> steps;
  config::Problems faults;
  config::Problems notes;
  bool stopped = false;  // Asked to, between two steps.
  std::string success;   // What the last line says then, if not the usual.

  bool complete() const { return faults.empty() && !stopped; }
  bool changed() const;
};

// What a run asks and tells on its way.
struct Progress {
  std::function<bool()> stop = [] { return false; };                       // Asked between steps.
  std::function<void(const std::string& why)> begin = [](const auto&) {};  // Of a change.
  std::function<void(const Step& step)> end = [](const auto&) {};          // Of any step.
};

}  // namespace ztcp::setup
