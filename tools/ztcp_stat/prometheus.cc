// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/prometheus.h"

#include <atomic>
#include <csignal>
#include <string>

#include <CLI/CLI.hpp>

#include "tools/ztcp_stat/export/export.h"

namespace ztcp::stat {
namespace {

std::atomic<bool> g_stop{false};

void stop_at(int signal) {
  struct sigaction action {};
  action.sa_handler = [](int) { g_stop.store(true); };
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

int run_textfile(const Selection& selection, const std::string& dir) {
  const auto look = look_at(selection);
  return look ? write_textfile(dir, metrics_of(*look)) : kExitUsage;
}

int run_listener(const Selection& selection, const std::string& at) {
  if (!look_at(selection)) return kExitUsage;
  stop_at(SIGINT);
  stop_at(SIGTERM);
  const auto metrics = [&selection] {
    const auto look = look_at(selection);
    return metrics_of(look ? *look : Look{});  // The config may have gone.
  };
  return listen_for_scrapes(at, metrics, g_stop);
}

}  // namespace

void add_prometheus(CLI::App& app, Command& command) {
  CLI::Option* textfile = app.add_option_function<std::string>(
      "--prometheus",
      [&command](const std::string& dir) {
        command.run = [&command, dir] { return run_textfile(command.selection, dir); };
      },
      "Write metrics to DIR/ztcp.prom for the node exporter's textfile collector");
  textfile->type_name("DIR");
  app.add_option_function<std::string>(
         "--listen",
         [&command](const std::string& at) {
           command.run = [&command, at] { return run_listener(command.selection, at); };
         },
         "Serve metrics to Prometheus: 127.0.0.1:9469, or :9469 for every address")
      ->excludes(textfile)
      ->type_name("ADDRESS:PORT");
}

}  // namespace ztcp::stat
