// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/startup.h"

#include <algorithm>
#include <string>

#include "plugin/device_lines.h"

namespace ztcp::plugin {
namespace {

using std::chrono::milliseconds;

// The devices a config promises, without the hardware behind them: host pointers only, and no PCI
// path, so that NCCL draws no conclusions from them.
std::vector<DeviceProperties> promised_devices(const std::optional<config::Fabric>& fabric) {
  std::vector<DeviceProperties> devices;
  if (fabric) {
    for (const config::Nic& nic : fabric->nics) {
      DeviceProperties device;
      device.name = nic.name;
      device.guid = devices.size() + 1;
      device.speed_mbps = config::told_speed_mbps(nic);
      device.max_comms = static_cast<int>(fabric->tcp.max_connections);
      devices.push_back(std::move(device));
    }
  }
  if (devices.empty()) {
    DeviceProperties device;
    device.name = "ztcp-error";
    devices.push_back(std::move(device));
  }
  return devices;
}

Told<Startup> refuse(const config::LoadResult& loaded, const config::Environment& environment,
                     const std::string& host, std::string reason) {
  if (environment.on_error == config::OnError::kFallback && environment.ztcp_is_demanded)
    return report(Errc::kBadConfig,
                  "{}; NCCL_NET=ztcp keeps NCCL from using another network, so the job ends here "
                  "in spite of ZTCP_ON_ERROR=fallback: unset NCCL_NET on all hosts to fall back",
                  reason);
  if (environment.on_error == config::OnError::kFallback)
    return report(Errc::kBadConfig,
                  "{}; NCCL goes on without ztcp (ZTCP_ON_ERROR=fallback): all hosts of the job "
                  "must do the same, or their connections fail",
                  reason);
  log::warn("{}; connections to and from this host will be refused", reason);
  Startup startup;
  startup.devices = promised_devices(loaded.fabric);
  startup.refusal = std::move(reason);
  startup.host = host;
  startup.connect_timeout = milliseconds(config::Tcp{}.connect_timeout_ms);
  return startup;
}

// Every problem gets its own line; the reason that connections then quote names the first.
std::string say_problems(const std::string& path, const config::Problems& problems) {
  for (const config::Problem& problem : problems) log::warn("{}", config::to_string(problem));
  std::string reason = path + " can't be honoured";
  if (!problems.empty()) reason += ": " + config::to_string(problems.front());
  if (problems.size() > 1) reason += fmt::format(" (and {} more)", problems.size() - 1);
  return reason;
}

}  // namespace

Told<Startup> start_up(const StartupSources& sources, const config::Environment& environment,
                       const std::string& host) {
  for (const config::Problem& problem : environment.problems)
    log::warn("{}", config::to_string(problem));

  config::LoadResult loaded = sources.load(environment.config_path);
  if (!loaded.fabric && loaded.failure == config::LoadFailure::kMissing)
    return report(
        Errc::kBadConfig,
        "no fabric config at {}, so {}; run ztcp_setup on every host, or point ZTCP_CONFIG "
        "at a config (ztcp_setup --local N writes one for a try inside one machine)",
        loaded.path,
        environment.ztcp_is_demanded
            ? "the job ends here: NCCL_NET=ztcp keeps NCCL from using another network"
            : "NCCL goes on without ztcp (with NCCL_NET=ztcp the job would end here)");
  if (!loaded.fabric)
    return refuse(loaded, environment, host, say_problems(loaded.path, loaded.problems));

  const config::Fabric& fabric = *loaded.fabric;
  if (const config::Problems problems = sources.check_host(fabric); !problems.empty())
    return refuse(loaded, environment, host, say_problems(loaded.path, problems));

  Result<std::unique_ptr<Transport>> transport = sources.create_transport(fabric);
  if (!transport)
    return refuse(loaded, environment, host,
                  "the userspace TCP transport can't start: " + explain(transport.error()));

  Startup startup;
  startup.devices = (*transport)->devices();
  startup.transport = std::move(*transport);
  startup.host = host;
  startup.connect_timeout = milliseconds(fabric.tcp.connect_timeout_ms);
  // A transport may show fewer devices than the config has NICs, never more, and in its order.
  for (std::size_t i = 0; i < std::min(fabric.nics.size(), startup.devices.size()); ++i)
    log::info("{}", device_line(fabric, fabric.nics[i], startup.devices[i]));
  return startup;
}

}  // namespace ztcp::plugin
