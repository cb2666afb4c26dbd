// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command line.
#pragma once

#include <cstdint>
#include <string>

#include <tl/expected.hpp>

#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/plan/request.h"

namespace ztcp::setup {

enum class Command : std::uint8_t {
  kSetUp,
  kAdd,
  kBoot,
  kUndo,
  kUndoDryRun,
  kDryRun,
  kCheck,
  kLocal
};

struct Options {
  Command command = Command::kSetUp;
  PlanRequest request;  // Its mode is the command's, also in a dry run.
  LocalRequest local;
  bool json = false;
};

// For --help, --version and mistakes: the exit status; all output has been printed.
tl::expected<Options, int> parse_options(int argc, char** argv);

}  // namespace ztcp::setup
