// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/probe.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
#include <unistd.h>
#include <unordered_map>

#include "tools/common/atomic_file.h"
#include "tools/common/standard_streams.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"
#include "tools/ztcp_perf/probe/agent.h"
#include "tools/ztcp_perf/probe/agents.h"
#include "tools/ztcp_perf/probe/coordinator.h"
#include "tools/ztcp_perf/probe/document.h"
#include "tools/ztcp_perf/probe/host_list.h"
#include "tools/ztcp_perf/probe/options.h"
#include "tools/ztcp_perf/probe/remote_command.h"
#include "tools/ztcp_perf/probe/rendezvous.h"
#include "tools/ztcp_perf/probe/table.h"

namespace ztcp::perf::probe {
namespace {

std::string own_path() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "ztcp_perf";
}

std::string read_hosts(const std::string& path) {
  std::ifstream file(path == "-" ? "/dev/stdin" : path);
  if (!file) fail("--hosts {}: {}", path, std::strerror(errno));
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) fail("--hosts {}: cannot be read", path);
  return text;
}

// Hosts that agree in their own name are told apart by rank.
std::vector<Host> hosts_of(const std::vector<Arrival>& arrivals, double timeout_s) {
  std::unordered_map<std::string, int> names;
  for (const Arrival& arrival : arrivals) ++names[arrival.host];
  std::vector<Host> hosts;
  for (const Arrival& arrival : arrivals) {
    Host& host = hosts.emplace_back();
    const std::size_t rank = hosts.size() - 1;
    host.name = arrival.host;
    if (rank > 0 && arrival.fd < 0) {
      host.name = fmt::format("rank {}", rank);
      host.failure = fmt::format("did not call within {:g} s (--host-timeout)", timeout_s);
    } else if (names[arrival.host] > 1) {
      host.name += fmt::format("#{}", rank);
    }
  }
  return hosts;
}

// stdout is for the lines alone: a plugin that prints must not break them.
int be_agent(const ProbeOptions& options) {
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const std::string line = to_line({{"ztcp_probe", kProtocol}, {"version", ZTCP_VERSION}});
  if (write(out, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return kExitNotRun;
  return run_agent(options, STDIN_FILENO, out);
}

// Returns the exit code.
int conclude(const ProbeOptions& options, const Results& results, bool is_measured) {
  const std::vector<Finding> findings = judge(results, options.limits);
  int exit_code = kExitGood;
  if (!findings.empty() && findings.front().is_fault) exit_code = kExitBad;
  if (!is_measured) exit_code = kExitNotRun;
  if (options.json != "-") std::fputs(render(results, options.limits, findings).c_str(), stdout);
  if (options.json.empty()) return exit_code;
  const std::string text = document_of(results, findings, exit_code).dump(2) + "\n";
  if (options.json == "-") {
    std::fputs(text.c_str(), stdout);
  } else if (const Status written = tools::write_report(options.json, text); !written) {
    fail("{}", json_failure(options.json, written.error()));
  }
  return exit_code;
}

int coordinate(const ProbeOptions& options, Agents& agents, std::vector<Host> hosts,
               bool is_greeted) {
  const std::size_t count = hosts.size();
  Coordinator coordinator(options, agents, std::move(hosts));
  coordinator.meet(is_greeted);
  const bool is_measured = coordinator.ready() >= 2;
  if (is_measured) coordinator.measure();
  const int exit_code = conclude(options, coordinator.take_results(), is_measured);
  for (std::size_t host = 0; host < count; ++host)
    agents.send(host, {{"do", "end"}, {"exit_code", exit_code}});
  return exit_code;
}

// Each agent takes three descriptors: 341 hosts would reach the usual soft limit.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int coordinate_by_ssh(const ProbeOptions& options) {
  std::vector<Host> hosts;
  for (const std::string& name : options.hosts) hosts.emplace_back().name = name;
  raise_descriptor_limit();
  Agents agents(hosts.size());
  const std::string program = options.remote.empty() ? own_path() : options.remote;
  const std::string command = shell_command(agent_command(options, program));
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    std::vector<std::string> words = options.ssh;
    words.insert(words.end(), {hosts[host].name, command});
    agents.start(host, std::move(words));
  }
  return coordinate(options, agents, std::move(hosts), /*is_greeted=*/false);
}

int coordinate_ranks(const ProbeOptions& options) {
  const std::vector<Arrival> arrivals = gather(options);
  raise_descriptor_limit();
  Agents agents(arrivals.size());
  agents.start(0, agent_command(options, own_path()));
  for (std::size_t rank = 1; rank < arrivals.size(); ++rank)
    if (arrivals[rank].fd >= 0) agents.attach(rank, arrivals[rank].fd);
  return coordinate(options, agents, hosts_of(arrivals, options.host_timeout_s),
                    /*is_greeted=*/true);
}

int run(const ProbeOptions& options) {
  if (options.is_agent) return be_agent(options);
  note_interrupts(/*ignore_sigint=*/false);
  if (!options.hosts_file.empty()) return coordinate_by_ssh(options);
  if (options.rank == 0) return coordinate_ranks(options);
  const int fd = join(options);
  return run_agent(options, fd, fd);
}

}  // namespace

int run_probe(int argc, char** argv) {
  const auto complain = [](const std::exception& failure) {
    std::fprintf(stderr, "ztcp_perf probe: %s\n", failure.what());
  };
  ProbeOptions options;
  try {
    options = parse_probe_options(argc, argv);
    if (!options.hosts_file.empty())
      options.hosts = parse_host_list(read_hosts(options.hosts_file), options.hosts_file);
  } catch (const std::exception& failure) {
    complain(failure);
    return kExitUsage;
  }
  try {
    const int exit_code = run(options);
    const bool all_is_said = tools::has_kept_output("ztcp_perf");
    return exit_code == kExitGood && !all_is_said ? kExitNotRun : exit_code;
  } catch (const Stopped& stopped) {
    complain(stopped);
    return kExitInterrupted;
  } catch (const std::exception& failure) {
    complain(failure);
    return kExitNotRun;
  }
}

}  // namespace ztcp::perf::probe
