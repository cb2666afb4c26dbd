// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <cstdio>
#include <exception>
#include <functional>

#include <CLI/CLI.hpp>

#include "tools/common/standard_streams.h"
#include "tools/ztcp_stat/hosts/command.h"

namespace {

int run(int argc, char** argv) {
  std::function<int()> chosen;
  CLI::App app("Shows the state of ztcp's hosts.", "ztcp_stat");
  app.set_version_flag("--version", "ztcp_stat " ZTCP_VERSION);
  app.require_subcommand(1);
  ztcp::stat::hosts::add_hosts(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : ztcp::stat::hosts::kExitBadInput;
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  ztcp::tools::keep_standard_streams();
  try {
    const int status = run(argc, argv);
    return status == 0 && !ztcp::tools::has_kept_output("ztcp_stat") ? 1 : status;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ztcp_stat: %s\n", failure.what());
    return 1;
  }
}
