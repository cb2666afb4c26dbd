// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/options.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/common/quantity.h"
#include "tools/ztcp_perf/environment.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/secret.h"

namespace ztcp::perf::probe {
namespace {

constexpr int kMaxRanks = 4096;
constexpr double kLongestSeconds = 1e6;

constexpr const char* kExamples = R"(
Examples:
  ztcp_perf probe --hosts hosts.txt            start a process on each host with ssh
  ztcp_perf probe --hosts hosts.txt --json -   the same for scripts
  srun --ntasks-per-node 1 ztcp_perf probe     let Slurm start them
  ztcp_perf probe --hosts hosts.txt --seconds 0.2 --pair-timeout 10
                                               a quick check before a job

Exit status: 0 good, 1 a host, NIC or rail is bad, 2 wrong command line, 3 fewer than two hosts
could be measured, 130 interrupted. `man ztcp_perf` has more.
)";

// Options that need work after parsing.
struct Raw {
  std::string ssh;
  std::string rendezvous;
  std::string secret_file;
  std::string log = "warn";
  std::string resent;
  int rank = -1;
};

void add_places(CLI::App& app, ProbeOptions& o, Raw& raw) {
  constexpr const char* kGroup = "Hosts";
  auto* hosts =
      app.add_option("--hosts", o.hosts_file,
                     "File with a host a line, or - for stdin; each gets a process by ssh")
          ->type_name("FILE");
  auto* ssh = app.add_option("--ssh", raw.ssh,
                             "Command in place of \"ssh -o BatchMode=yes\"; it gets the host and a "
                             "shell command")
                  ->type_name("COMMAND");
  auto* remote =
      app.add_option("--remote", o.remote, "ztcp_perf on the hosts; default: the path of this one")
          ->type_name("PATH");
  auto* ranks = app.add_option("--ranks", o.ranks,
                               "Processes that a launcher started, one a host; default: from the "
                               "environment of srun, mpirun or torchrun")
                    ->check(CLI::Range(2, kMaxRanks));
  auto* rank = app.add_option("--rank", raw.rank, "This process's number; default: likewise")
                   ->check(CLI::NonNegativeNumber);
  auto* meet = app.add_option("--rendezvous", raw.rendezvous, "HOST:PORT of rank 0's listener");
  auto* file = app.add_option("--rendezvous-file", o.rendezvous_file,
                              "File on a shared disk in which rank 0 tells its address")
                   ->type_name("FILE");
  auto* secret =
      app.add_option("--secret-file", raw.secret_file, "File with a text that all ranks share");
  auto* agent = app.add_flag("--agent", o.is_agent, "Obey a coordinator on stdin")->group("");
  for (CLI::Option* one : {hosts, ssh, remote, ranks, rank, meet, file, secret}) one->group(kGroup);
  hosts->excludes(ranks)->excludes(rank)->excludes(meet)->excludes(file)->excludes(agent);
  meet->excludes(file);
}

void add_plugin(CLI::App& app, ProbeOptions& o, Raw& raw) {
  constexpr const char* kGroup = "Plugin";
  app.add_option("--plugin", o.plugin,
                 "The plugin on all hosts; default: the one beside ztcp_perf, else that of the "
                 "library path")
      ->group(kGroup);
  app.add_option("--config", o.config, "ztcp.conf on all hosts (ZTCP_CONFIG)")->group(kGroup);
  app.add_option("--abi", o.abi, "Use ncclNetPlugin_vN; default: the newest one in the plugin")
      ->check(CLI::Range(6, 12))
      ->group(kGroup);
  app.add_option("--device", o.devices, "Measure this device only (repeatable); default: all")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  app.add_option("--log", raw.log, "Level of the plugin's messages, default warn")
      ->check(CLI::IsMember({"none", "warn", "info"}))
      ->group(kGroup);
}

void add_measurement(CLI::App& app, ProbeOptions& o) {
  constexpr const char* kGroup = "Measurement";
  app.add_option("--seconds", o.seconds, "Time for one rail of one pair, default 1")
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  app.add_option("--at-once", o.at_once,
                 "Pairs measured at the same time; default: all of a round, which has every host "
                 "once")
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  app.add_option("--host-timeout", o.host_timeout_s,
                 "Seconds for a host to start its process and load the plugin, default 30")
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  app.add_option("--pair-timeout", o.pair_timeout_s,
                 "Seconds for one rail of one pair to connect and measure, default 30")
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  app.add_option("--json", o.json, "Write the results as JSON to FILE, or - for stdout")
      ->type_name("FILE")
      ->group(kGroup);
}

void add_limits(CLI::App& app, ProbeOptions& o, Raw& raw) {
  constexpr const char* kGroup = "Limits: a measurement is bad";
  app.add_option("--slow", o.limits.slow, "below this share of the median bandwidth, default 0.7")
      ->check(CLI::Range(0.0, 1.0))
      ->group(kGroup);
  app.add_option("--late", o.limits.late, "beyond this multiple of the median latency, default 2")
      ->check(CLI::Range(1.0, 1e6))
      ->group(kGroup);
  app.add_option("--loss", raw.resent, "if a larger share of bytes was sent again, default 0.5%")
      ->type_name("SHARE")
      ->group(kGroup);
  app.add_option("--min-gbit", o.limits.min_gbit_per_s, "below this bandwidth, in Gbit/s")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  app.add_option("--max-us", o.limits.max_latency_us, "beyond this latency, in microseconds")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
}

void place(ProbeOptions& o, const Raw& raw) {
  const Lookup environment = process_environment();
  std::string first_host;
  if (raw.rank >= 0) {
    o.rank = raw.rank;
    if (o.ranks == 0) fail("--rank {} without --ranks", raw.rank);
  } else {
    const auto found = place_in(environment);
    if (!found)
      fail(
          "give --hosts FILE, or start one process on each host by srun or mpirun (or with --rank "
          "and --ranks)");
    if (o.ranks != 0 && o.ranks != found->ranks)
      fail("--ranks {}: the launcher started {}", o.ranks, found->ranks);
    if (found->local_rank.value_or(0) > 0)
      fail(
          "two processes on one host would share its NICs: start one a host, such as by "
          "srun --ntasks-per-node 1");
    o.rank = found->rank;
    o.ranks = found->ranks;
    first_host = found->first_host;
  }
  if (o.rank >= o.ranks) fail("--rank {} with --ranks {}: ranks count from 0", o.rank, o.ranks);
  o.secret = find_secret(raw.secret_file, environment);
  if (!o.rendezvous_file.empty()) return;
  if (!raw.rendezvous.empty()) {
    const Rendezvous address = parse_rendezvous(raw.rendezvous);
    o.rendezvous_host = address.host;
    o.rendezvous_port = address.port;
    return;
  }
  o.rendezvous_host = environment("MASTER_ADDR").value_or(first_host);
  if (o.rendezvous_host.empty())
    fail(
        "rank {} does not know where rank 0 is: give --rendezvous HOST:PORT, or "
        "--rendezvous-file FILE on a shared disk",
        o.rank);
  o.rendezvous_port = perf::rendezvous_port(environment);
}

void complete(ProbeOptions& o, const Raw& raw) {
  for (const auto& [option, seconds] :
       {std::pair{"--seconds", o.seconds}, std::pair{"--host-timeout", o.host_timeout_s},
        std::pair{"--pair-timeout", o.pair_timeout_s}})
    if (!(seconds <= kLongestSeconds))
      fail("{} {}: must be seconds, at most {}", option, seconds, kLongestSeconds);
  if (o.pair_timeout_s < o.seconds)
    fail("--pair-timeout {:g} is shorter than --seconds {:g}", o.pair_timeout_s, o.seconds);
  if (!raw.resent.empty()) {
    const auto share = tools::parse_probability(raw.resent);
    if (!share) fail("--loss {}: expected a share, such as 0.1%", raw.resent);
    o.limits.resent = *share;
  }
  if (!raw.ssh.empty()) {
    std::istringstream words(raw.ssh);
    o.ssh.clear();
    for (std::string word; words >> word;) o.ssh.push_back(word);
    if (o.ssh.empty()) fail("--ssh: the command is empty");
  }
  o.log = raw.log == "none"   ? LogLevel::kNone
          : raw.log == "info" ? LogLevel::kInfo
                              : LogLevel::kWarn;
  std::ranges::sort(o.devices);
  if (o.hosts_file.empty() && !o.is_agent) place(o, raw);
}

}  // namespace

ProbeOptions parse_probe_options(int argc, char** argv) {
  ProbeOptions o;
  Raw raw;
  CLI::App app(
      "Measures the network between every two hosts and NICs, and names the bad host, NIC or rail.",
      "ztcp_perf probe");
  app.footer(kExamples);
  add_places(app, o, raw);
  add_plugin(app, o, raw);
  add_measurement(app, o);
  add_limits(app, o, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? kExitGood : kExitUsage);
  }
  complete(o, raw);
  if (!o.is_agent && o.rank == 0) check_json_path(o.json);
  return o;
}

}  // namespace ztcp::perf::probe
