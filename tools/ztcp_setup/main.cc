// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ztcp_setup: prepares a machine for ztcp.
#include <algorithm>
#include <csignal>
#include <exception>
#include <string_view>

#include "tools/common/standard_streams.h"
#include "tools/ztcp_setup/options.h"
#include "tools/ztcp_setup/report/report.h"
#include "tools/ztcp_setup/run/commands.h"

namespace ztcp::setup {
namespace {

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return options.error();
  switch (options->command) {
    case Command::kLocal:
      return write_local_fabric(*options);
    case Command::kDryRun:
      return dry_run(*options);
    case Command::kCheck:
      return check(*options);
    case Command::kSetUp:
      return set_up(*options);
    case Command::kAdd:
      return add(*options);
    case Command::kBoot:
      return boot(*options);
    case Command::kUndoDryRun:
      return undo_dry_run(*options);
    case Command::kUndo:
      return undo(*options);
  }
  return kExitUnusable;
}

}  // namespace
}  // namespace ztcp::setup

int main(int argc, char** argv) try {
  ztcp::tools::keep_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // Then a write beyond ulimit -f fails with an error.
  const int status = ztcp::setup::run(argc, argv);
  const bool all_is_said = ztcp::tools::has_kept_output("ztcp_setup");
  return status == ztcp::setup::kExitGood && !all_is_said ? ztcp::setup::kExitWarnings : status;
} catch (const std::exception& error) {  // Out of memory, for example.
  const bool json =
      std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
  return ztcp::setup::refuse({"this run", error.what(),
                              "changes so far are in the journal: run it again, or sudo "
                              "ztcp_setup --undo"},
                             json);
}
