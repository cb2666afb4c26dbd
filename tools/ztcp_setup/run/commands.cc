// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "config/environment.h"
#include "config/file/load.h"
#include "config/machine/readings.h"
#include "config/topology/topology.h"
#include "tools/common/shared_config.h"
#include "tools/ztcp_setup/check/checks.h"
#include "tools/ztcp_setup/check/job_environment.h"
#include "tools/ztcp_setup/host/usable_cpus.h"
#include "tools/ztcp_setup/live/live_host.h"
#include "tools/ztcp_setup/plan/boot_unit.h"
#include "tools/ztcp_setup/plan/iommu.h"
#include "tools/ztcp_setup/report/report.h"
#include "tools/ztcp_setup/run/preview.h"

namespace ztcp::setup {

int write_local_fabric(const Options& options) {
  LocalRequest request = options.local;
  LiveHost host(LiveHost::Purpose::kInspect);
  request.cpus = static_cast<unsigned>(std::max<std::size_t>(usable_cpus(host).count(), 1));
  const auto fabric = plan_local(request);
  if (!fabric) return refuse(fabric.error(), options.json);
  if (const auto written = write_local(*fabric); !written)
    return refuse(written.error(), options.json);
  fmt::print("{}", options.json ? to_json(*fabric, options.local.topology)
                                : to_text(*fabric, options.local.topology));
  return kExitGood;
}

std::string config_path_of(const PlanRequest& request) {
  std::error_code error;
  const auto path = std::filesystem::absolute(request.config_path, error);
  return error ? request.config_path : path.lexically_normal().string();
}

Result<Plan, config::Problem> plan_here(Host& host, const PlanRequest& asked) {
  PlanRequest request = asked;
  request.config_path = config_path_of(asked);
  config::LoadResult existing = config::load(host, request.config_path);
  // An unreadable config may describe taken NICs: overwriting it would lose them.
  if (!existing.fabric && existing.failure != config::LoadFailure::kMissing)
    return tl::unexpected(existing.problems.front());
  PlanInput input{host, request, std::move(existing.fabric), "", unit_text_here(host)};
  input.existing_text = config::text_of(host, request.config_path);
  return make_plan(input);
}

Result<DryRun, config::Problem> dry_run_here(Host& host, const PlanRequest& request) {
  DryRun run{ZTCP_TRY(plan_here(host, request)), {}};
  run.changes = preview_run(host, request.mode, run.plan);
  return run;
}

int dry_run(const Options& options) {
  LiveHost host(LiveHost::Purpose::kInspect);
  const auto run = dry_run_here(host, options.request);
  if (!run) return refuse(run.error(), options.json);
  fmt::print("{}",
             options.json ? to_json(run->plan, run->changes) : to_text(run->plan, run->changes));
  return exit_code(run->plan);
}

int undo_dry_run(const Options& options) {
  LiveHost host(LiveHost::Purpose::kInspect);
  if (host.facts(Journal::kFolder).kind != FileKind::kAbsent &&
      !host.may_access(Journal::kFolder, X_OK))
    return refuse({Journal::kFolder, "only root can read the journal of set-up's changes",
                   "sudo ztcp_setup --undo --dry-run"},
                  options.json);
  const auto journal = Journal::open(host);
  if (!journal) return refuse(journal.error(), options.json);
  const UndoPreview preview = preview_undo(host, *journal);
  fmt::print("{}", options.json ? to_json(preview) : to_text(preview));
  return exit_code(preview);
}

CheckReport check_here(Host& host, const std::string& config_path, const char* const* variables) {
  CheckReport report;
  report.version = ZTCP_VERSION;
  report.config_path = config_path;
  const config::LoadResult loaded = config::load(host, config_path);
  report.load_problems = loaded.problems;
  if (!loaded.fabric) return report;
  const config::Fabric& fabric = *loaded.fabric;
  report.digest = tools::shared_hash(fabric);
  config::GpuList gpus;
  if (const auto topology = config::detect(host, host.fsroot(), {}, {}))
    for (const config::Gpu& gpu : topology->gpus) gpus.push_back(gpu.pci);
  const auto network = host.network();
  const JobEnvironment job{host, tools::variables_of(variables),
                           host.link_target("/proc/self/exe").value_or(""),
                           network ? default_interface(*network) : std::string()};
  config::XdpFactsByInterface xdp;
  for (const config::Nic& nic : fabric.nics)
    if (nic.driver == config::NicDriver::kXdp)
      xdp[nic.interface] = {host.xdp_obstacle(nic.interface),
                            host.xdp_mode(nic.interface, nic.mtu_bytes),
                            host.xdp_is_in_use(nic.interface)};
  report.checks = config::run_checks(fabric, host, gpus, {}, host.addresses(), xdp);
  judge_serving(fabric, report.checks);
  for (const auto& more : {check_job_environment(fabric, job), check_groups(fabric, host),
                           check_rights(fabric, host), check_firewall(fabric, host),
                           check_source_routes(fabric, host), check_lossless(fabric, host)})
    report.checks.insert(report.checks.end(), more.begin(), more.end());
  for (config::Problem& problem : config::read_environment(variables).problems)
    report.checks.push_back({"variable", config::Severity::kWarning, std::move(problem)});
  return report;
}

int check(const Options& options) {
  LiveHost host(LiveHost::Purpose::kInspect);
  const CheckReport report = check_here(host, options.request.config_path, environ);
  fmt::print("{}", options.json ? to_json(report) : to_text(report));
  return exit_code(report);
}

}  // namespace ztcp::setup
