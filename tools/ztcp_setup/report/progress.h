// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The progress and the result of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/problem.h"

namespace ztcp::setup {

enum class StepResult : std::uint8_t { kHeld, kChanged, kReverted, kFailed };

struct Step {
  std::string why;  // The resource's description.
  StepResult result = StepResult::kHeld;
};

struct Outcome {
  std::vector<Step> steps;
  config::Problems faults;
  config::Problems notes;
  bool stopped = false;  // The user stopped it between two steps.
  std::string success;   // Replaces the usual last line.

  bool complete() const { return faults.empty() && !stopped; }
  bool changed() const;
};

// Callbacks of a run.
struct Progress {
  std::function<bool()> stop = [] { return false; };                       // Polled between steps.
  std::function<void(const std::string& why)> begin = [](const auto&) {};  // Before a change.
  std::function<void(const Step& step)> end = [](const auto&) {};          // After every step.
};

}  // namespace ztcp::setup
