// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command line of "ztcp_perf probe".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/probe/verdict.h"

namespace ztcp::perf::probe {

inline constexpr int kExitGood = 0;
inline constexpr int kExitBad = 1;     // A host, NIC or rail is bad.
inline constexpr int kExitNotRun = 3;  // Fewer than two hosts could be measured.
inline constexpr int kExitInterrupted = 130;

struct ProbeOptions {
  std::string hosts_file;
  std::vector<std::string> hosts;  // The lines of hosts_file.
  std::vector<std::string> ssh = {"ssh", "-o", "BatchMode=yes"};
  std::string remote;  // The ztcp_perf to start on the hosts; empty: the path of this one.
  int ranks = 0;       // With a launcher, in place of hosts_file.
  int rank = 0;
  std::string rendezvous_host;
  std::uint16_t rendezvous_port = 0;
  std::string rendezvous_file;
  std::string secret;
  bool is_agent = false;  // Started by a coordinator.

  std::string plugin;
  std::string config;
  int abi = 0;
  LogLevel log = LogLevel::kWarn;
  std::vector<int> devices;  // Empty: all.
  double seconds = 1;        // For one pair and rail.
  double host_timeout_s = 30;
  double pair_timeout_s = 30;
  int at_once = 0;  // Pairs measured at the same time; 0: all of a round.
  std::string json;
  Limits limits;
};

// Ends the process for --help and for usage errors.
ProbeOptions parse_probe_options(int argc, char** argv);

}  // namespace ztcp::perf::probe
