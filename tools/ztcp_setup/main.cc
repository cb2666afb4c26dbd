// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ztcp_setup: prepares a machine for ztcp.
#include "tools/ztcp_setup/commands.h"

int main(int argc, char** argv) {
  using namespace ztcp::setup;
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
    case Command::kAdd:
    case Command::kBoot:
    case Command::kUndo:
      break;
  }
  return refuse({"set-up", "this version can't change the machine yet; nothing was changed",
                 "ztcp_setup --dry-run shows what is planned, ztcp_setup --local 4 works today"},
                options->json);
}
