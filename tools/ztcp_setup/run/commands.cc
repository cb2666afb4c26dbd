// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/commands.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "config/environment.h"
#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "config/topology/topology.h"
#include "tools/ztcp_setup/check/rights.h"
#include "tools/ztcp_setup/check/surroundings.h"
#include "tools/ztcp_setup/live/live_host.h"
#include "tools/ztcp_setup/plan/boot_unit.h"
#include "tools/ztcp_setup/plan/iommu.h"
#include "tools/ztcp_setup/report/report.h"
#include "tools/ztcp_setup/run/foresee.h"

namespace ztcp::setup {

int write_local_fabric(const Options& options) {
  const auto fabric = plan_local(options.local);
  if (!fabric) return refuse(fabric.error(), options.json);
  if (const auto written = write_local(*fabric); !written)
    return refuse(written.error(), options.json);
  fmt::print("{}", options.json ? to_json(*fabric, options.local.topology)
                                : to_text(*fabric, options.local.topology));
  return kExitGood;
}

tl::expected<Plan, config::Problem> plan_here(const Request& request) {
  PlanInput input;
  input.request = request;
  auto network = config::read_network();
  if (!network) return tl::unexpected(network.error());
  input.network = std::move(*network);
  config::LoadResult existing = config::load(request.config_path);
  // A config that can't be read might describe NICs that are taken: writing over it loses them.
  if (!existing.fabric && existing.failure != config::LoadFailure::kMissing)
    return tl::unexpected(existing.problems.front());
  input.existing = std::move(existing.fabric);
  input.existing_text = config::read_text(request.config_path).value_or("");
  LiveHost host;
  input.unit_text = unit_text_here(host);
  return make_plan(input);
}

int dry_run(const Options& options) {
  auto plan = plan_here(options.request);
  if (!plan) return refuse(plan.error(), options.json);
  LiveHost host;
  const bool more = options.request.mode == Mode::kAdd || plan->awaits_reboot;
  foresee(host, more ? Scope::kMore : Scope::kWhole, *plan);
  fmt::print("{}", options.json ? to_json(*plan) : to_text(*plan));
  return exit_code(*plan);
}

int check(const Options& options) {
  CheckReport report;
  report.config_path = options.request.config_path;
  const config::LoadResult loaded = config::load(report.config_path);
  report.load_problems = loaded.problems;
  if (loaded.fabric) {
    config::GpuList gpus;
    config::LiveMachine machine;
    if (const auto topology = config::detect(machine, "/", {}, {}))
      for (const config::Gpu& gpu : topology->gpus) gpus.push_back(gpu.pci);
    report.checks = config::run_checks(*loaded.fabric, machine, gpus);
    std::error_code unknown;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
    const auto network = config::read_network();
    const Surroundings surroundings{machine, variables_of(environ), program.string(),
                                    network ? default_interface(*network) : std::string()};
    for (config::Check& one : check_surroundings(*loaded.fabric, surroundings))
      report.checks.push_back(std::move(one));
    for (config::Check& one : check_groups(*loaded.fabric, machine))
      report.checks.push_back(std::move(one));
    for (config::Check& one : check_rights(*loaded.fabric, ""))
      report.checks.push_back(std::move(one));
    for (config::Problem& problem : config::read_environment().problems)
      report.checks.push_back({"variable", config::Severity::kWarning, std::move(problem)});
  }
  fmt::print("{}", options.json ? to_json(report) : to_text(report));
  return exit_code(report);
}

}  // namespace ztcp::setup
