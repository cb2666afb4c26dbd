// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_switch/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "tools/common/quantity.h"

namespace ztcp::fabric {
namespace {

constexpr int kExitUsage = 2;

[[noreturn]] void refuse(const std::string& text) {
  std::fprintf(stderr, "ztcp_switch: %s\n", text.c_str());
  std::exit(kExitUsage);
}

// Adds one port for each NIC of the config that connects to a memif server.
void add_config_ports(SwitchOptions& o, const PortSettings& defaults) {
  config::LiveMachine machine;
  const config::LoadResult loaded = config::load(machine, o.config);
  for (const config::Problem& problem : loaded.problems)
    std::fprintf(stderr, "ztcp_switch: %s\n", config::to_string(problem).c_str());
  if (!loaded.fabric)
    refuse(fmt::format("cannot use the config {}; ztcp_setup --local N writes one", o.config));
  for (const config::Nic& nic : loaded.fabric->nics) {
    if (nic.driver != config::NicDriver::kMemif || nic.memif_role != config::MemifRole::kClient)
      continue;
    PortOptions port;
    port.target = nic.memif_socket;
    port.memif_id = nic.memif_id;
    port.mtu_bytes = nic.mtu_bytes;
    port.settings = defaults;
    port.settings.name = nic.name;
    o.ports.push_back(std::move(port));
  }
  if (o.ports.empty())
    refuse(
        fmt::format("{} has no NIC for a switch (driver = \"memif\", memif_role = \"client\"); "
                    "ztcp_setup --local N --topology switch writes a fabric of them",
                    o.config));
  o.spin = std::chrono::microseconds(loaded.fabric->poller.spin_us);
  o.max_sleep = std::chrono::microseconds(loaded.fabric->poller.max_sleep_us);
}

std::function<void(const std::string&)> duration_into(Duration& value, const char* option) {
  return [&value, option](const std::string& text) {
    const auto parsed = tools::parse_duration(text);
    if (!parsed)
      throw CLI::ValidationError(option, fmt::format("'{}' is not a time (2ms, 1s)", text));
    value = *parsed;
  };
}

}  // namespace

SwitchOptions parse_options(int argc, char** argv) {
  SwitchOptions o;
  PortSettings defaults;
  std::vector<std::string> specs;
  CLI::App app(
      "A learning Ethernet switch in software between memif and tap ports, with a bad network on "
      "demand.");
  app.set_version_flag("--version", "ztcp_switch " ZTCP_VERSION);
  app.add_option("--config", o.config, "ztcp.conf: a port for each of its memif NICs");
  app.add_option("--port", specs,
                 "A port: memif:SOCKET[,id=N][,mtu=N] or tap:NAME[,mtu=N]; nic:NAME changes one of "
                 "the config's. Impairments as ,loss=1% for frames leaving the switch here and "
                 ",in.loss=1% for frames entering")
      ->take_all();

  const auto impairment = [&](const char* key, const char* help) {
    app.add_option_function<std::string>(
        fmt::format("--{}", key),
        [&defaults, key](const std::string& value) {
          if (const auto set = set_impairment(defaults.to_peer, key, value); !set)
            throw CLI::ValidationError(fmt::format("--{}", key), set.error());
        },
        help);
  };
  impairment("loss", "Share of frames lost as they leave, at every port: 1%");
  impairment("duplicate", "Share of frames duplicated");
  impairment("reorder", "Share of frames delayed so that later ones overtake them");
  impairment("reorder-delay", "Delay of these frames, default 1ms");
  impairment("corrupt", "Share of frames with one bit flipped behind the Ethernet header");
  impairment("delay", "Delay of every frame: 2ms");
  impairment("jitter", "Further delay of 0 to this, uniform; frames may overtake each other");
  impairment("rate", "Rate limit: 1Gbit");
  impairment("queue", "Bytes that may wait for the rate limit, default 1M");
  impairment("ecn-mark", "Mark CE when more than this many bytes wait: 64K");
  impairment("paths", "Frames take so many paths in turn: 4");
  impairment("path-skew", "Delay of the last path over the first: 100us");
  app.add_option_function<std::string>(
      "--shared-buffer",
      [&o](const std::string& value) {
        const auto bytes = tools::parse_bytes(value);
        if (!bytes) throw CLI::ValidationError("--shared-buffer", "no size: " + value);
        o.fabric.shared_buffer_bytes = *bytes;
      },
      "Memory that all ports with a rate limit share, beside each one's queue: 400K");
  app.add_option("--seed", o.fabric.seed, "The same seed and frames give the same run");

  app.add_option_function<std::string>(
      "--mac-age", duration_into(o.fabric.mac_age, "--mac-age"),
      "Forget addresses without frames after this time, default 300s");
  app.add_option_function<std::string>(
      "--stats-interval", duration_into(o.stats_interval, "--stats-interval"),
      "Print the counters at this interval, besides at SIGUSR1 and at the end");
  app.add_option("--json", o.json, "Write the counters to FILE at SIGUSR1 and at the end");
  app.add_option("--ready-fd", o.ready_fd, "Write \"ready\" to this descriptor and close it")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--exit-with-parent", o.exit_with_parent, "End when the parent process ends");
  app.add_flag("--quiet", o.quiet, "Print no counters at the end");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : kExitUsage);
  }

  if (!o.config.empty()) add_config_ports(o, defaults);
  for (const std::string& spec : specs) {
    if (spec.starts_with("nic:")) {
      if (const auto adjusted = adjust_port(spec, o.ports); !adjusted) refuse(adjusted.error());
      continue;
    }
    auto port = parse_port(spec, defaults);
    if (!port) refuse(port.error());
    o.ports.push_back(std::move(*port));
  }
  const auto memif_ports = std::count_if(o.ports.begin(), o.ports.end(), [](const PortOptions& p) {
    return p.kind == PortOptions::Kind::kMemif;
  });
  if (memif_ports > ZTCP_DPDK_MAX_PORTS)
    refuse(
        fmt::format("{} memif ports, but DPDK has no more than {} in one process: fewer ranks "
                    "(ztcp_setup --local {}), or fewer --port",
                    memif_ports, ZTCP_DPDK_MAX_PORTS, ZTCP_DPDK_MAX_PORTS));
  if (o.ports.empty()) refuse("no ports: give --config FILE or --port (see --help)");
  return o;
}

}  // namespace ztcp::fabric
