// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "tools/common/standard_streams.h"
#include "tools/ztcp_stat/capture/capture.h"
#include "tools/ztcp_stat/command.h"
#include "tools/ztcp_stat/hosts/command.h"
#include "tools/ztcp_stat/prometheus.h"
#include "tools/ztcp_stat/view.h"
#include "tools/ztcp_stat/why.h"

namespace ztcp::stat {
namespace {

void add_capture(CLI::App& app, Command& command) {
  auto options = std::make_shared<capture::CaptureOptions>();
  capture::add_capture_command(app, *options)->callback([&command, options] {
    command.run = [options] { return capture::run_capture(*options); };
  });
}

// Later ones win where two set Command::run.
constexpr AddCommand kCommands[] = {
    add_view,
    add_prometheus,
    add_why,
    add_capture,
    [](CLI::App& app, Command& command) { hosts::add_hosts(app, command.run); },
};

constexpr char kExamples[] = R"(Examples:
  ztcp_stat                       live view of this user's jobs on this host (root: all jobs)
  ztcp_stat why                   the slowest peer, flow or host, and the reason
  ztcp_stat --once                one view, for a ticket or a log
  ztcp_stat --json --watch 10     a line of JSON every 10 s
  ztcp_stat --pid 4242            only one process
  ztcp_stat --after-crash FILE    what a dead process did last; "ztcp_stat why" names the FILE
  ztcp_stat capture -o x.pcapng   frames of userspace TCP, for tcpdump and wireshark
  ztcp_stat hosts reports/*       what differs between the checks of many hosts

Exit status: 0 done or healthy, 1 a fault is named or the work failed, 2 usage, 3 no process is here.)";

void add_selection(CLI::App& app, Command& command) {
  app.add_option("--pid", command.selection.pid, "Only this process")
      ->check(CLI::PositiveNumber)
      ->type_name("PID");
  CLI::Option* folder =
      app.add_option("--folder", command.selection.folder, "Read the pages of this folder")
          ->type_name("DIR");
  app.add_option("--config", command.selection.config,
                 "Only processes that have read this ztcp.conf")
      ->excludes(folder)
      ->type_name("FILE");
}

int run(int argc, char** argv) {
  Command command;
  CLI::App app("Shows the ztcp processes of this host: devices, connections, rates and faults.",
               "ztcp_stat");
  app.set_help_flag();
  app.set_help_all_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", "ztcp_stat " ZTCP_VERSION);
  app.footer(kExamples);
  app.require_subcommand(0, 1);
  add_selection(app, command);
  for (const AddCommand add : kCommands) add(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitHealthy : kExitUsage;
  }
  return command.run();
}

}  // namespace
}  // namespace ztcp::stat

int main(int argc, char** argv) {
  ztcp::tools::keep_standard_streams();
  try {
    const int status = ztcp::stat::run(argc, argv);
    const bool is_kept = ztcp::tools::has_kept_output("ztcp_stat");
    return status == ztcp::stat::kExitHealthy && !is_kept ? ztcp::stat::kExitFault : status;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ztcp_stat: %s\n", failure.what());
    return ztcp::stat::kExitFault;
  }
}
