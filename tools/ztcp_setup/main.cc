// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ztcp_setup: prepares a machine for ztcp. This is the command line; what it does is in the other
// files.
#include <cstdio>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "config/environment.h"
#include "config/load.h"
#include "config/topology.h"
#include "tools/ztcp_setup/local.h"
#include "tools/ztcp_setup/plan.h"
#include "tools/ztcp_setup/report.h"
#include "tools/ztcp_setup/surroundings.h"

namespace {

using namespace ztcp;

constexpr const char* kExamples = R"(
Examples:
  ztcp_setup --local 4            four ranks inside this machine: no root, NIC or GPU needed
  ztcp_setup --local 2 --topology pair --dir /tmp/pair
                                  two ranks, joined directly instead of through ztcp_switch
  ztcp_setup --dry-run            which NIC each GPU would get, and every line that would change
  ztcp_setup --check              is this machine still as the config says? what mends it?
  ztcp_setup --check --json       the same for scripts

Exit status: 0 all is well, 1 warnings, 2 faults, 3 nothing to work with.
`man ztcp_setup` has more; `man ztcp.conf` describes the file that is written.
)";

struct Options {
  setup::LocalRequest local;
  std::string config_path;
  bool json = false;
};

int refuse(const config::Problem& problem, bool json) {
  if (json) fmt::print("{}", setup::to_json(problem));
  fmt::print(stderr, "{}", setup::to_text(problem));
  return setup::kExitUnusable;
}

int set_up_local(const Options& options) {
  const auto fabric = setup::plan_local(options.local);
  if (!fabric) return refuse(fabric.error(), options.json);
  if (const auto written = setup::write_local(*fabric); !written)
    return refuse(written.error(), options.json);
  fmt::print("{}", options.json ? setup::to_json(*fabric, options.local.topology)
                                : setup::to_text(*fabric, options.local.topology));
  return setup::kExitGood;
}

int dry_run(const Options& options) {
  setup::PlanInput input;
  input.config_path = options.config_path;
  input.addresses = config::interface_addresses();
  input.existing = config::load(options.config_path).fabric;
  const setup::Plan plan = setup::make_plan(input);
  fmt::print("{}", options.json ? setup::to_json(plan) : setup::to_text(plan));
  return exit_code(plan);
}

int check(const Options& options) {
  setup::CheckReport report;
  report.config_path = options.config_path;
  const config::LoadResult loaded = config::load(options.config_path);
  report.load_problems = loaded.problems;
  if (loaded.fabric) {
    config::GpuList gpus;
    if (const auto topology = config::detect("/", {}))
      for (const config::Gpu& gpu : topology->gpus) gpus.push_back(gpu.pci);
    const config::Roots roots;
    report.checks = config::run_checks(*loaded.fabric, roots, gpus);
    const setup::Surroundings surroundings{"/", roots, setup::variables_of(environ)};
    for (config::Check& one : setup::check_surroundings(*loaded.fabric, surroundings))
      report.checks.push_back(std::move(one));
    for (config::Problem& problem : config::read_environment().problems)
      report.checks.push_back({"variable", config::Severity::kWarning, std::move(problem)});
  }
  fmt::print("{}", options.json ? setup::to_json(report) : setup::to_text(report));
  return exit_code(report);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Prepares this machine for ztcp and writes the config that the plugin reads.",
               "ztcp_setup");
  app.footer(kExamples);
  app.get_formatter()->column_width(34);
  app.set_version_flag("--version", "ztcp_setup " ZTCP_VERSION);

  Options options;
  options.config_path = config::config_path();
  bool wants_dry_run = false;
  bool wants_check = false;
  bool wants_undo = false;
  auto* local = app.add_option("--local", options.local.ranks,
                               "Write a fabric of N ranks inside this machine")
                    ->type_name("N");
  app.add_option("--dir", options.local.folder, "Folder for the local fabric")
      ->type_name("DIR")
      ->capture_default_str()
      ->needs(local);
  std::string topology = "switch";
  app.add_option("--topology", topology,
                 "switch: all ranks meet in ztcp_switch; pair: two ranks joined directly")
      ->type_name("KIND")
      ->check(CLI::IsMember({"switch", "pair"}))
      ->capture_default_str()
      ->needs(local);
  app.add_option("--mtu", options.local.mtu_bytes,
                 "Largest IP packet of the local fabric, in bytes")
      ->type_name("N")
      ->capture_default_str()
      ->needs(local);
  auto* dry = app.add_flag("--dry-run", wants_dry_run,
                           "Show what set-up would do on this host; change nothing");
  auto* checks =
      app.add_flag("--check", wants_check, "Compare the config with this machine; change nothing");
  auto* undo = app.add_flag("--undo", wants_undo, "Give NICs and pages back");
  app.add_option("--config", options.config_path,
                 "The config file of --dry-run and --check, else $ZTCP_CONFIG or the default")
      ->type_name("FILE");
  app.add_flag("--json", options.json, "Answer in JSON");
  dry->excludes(local)->excludes(checks)->excludes(undo);
  checks->excludes(local)->excludes(undo);
  undo->excludes(local);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? setup::kExitGood : setup::kExitUnusable;
  }

  if (local->count() > 0) {
    if (topology == "pair") options.local.topology = setup::LocalTopology::kPair;
    return set_up_local(options);
  }
  if (wants_dry_run) return dry_run(options);
  if (wants_check) return check(options);
  return refuse({wants_undo ? "--undo" : "set-up",
                 wants_undo ? "this version takes over no NICs, so there is nothing to give back"
                            : "this version can't take over NICs yet; nothing was changed",
                 "ztcp_setup --dry-run shows what is planned, ztcp_setup --local 4 works today"},
                options.json);
}
