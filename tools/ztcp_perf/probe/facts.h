// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Facts of hosts that should be equal, and their comparison. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ztcp::perf::probe {

struct NicFacts {
  std::string name;  // As NCCL is told: "ztcp0".
  int device = 0;    // Its number in the plugin.
  int speed_mbps = 0;
  int mtu_bytes = 0;  // 0: unknown.
};

struct HostFacts {
  std::string version;  // The version of ztcp_perf.
  std::string plugin;   // Begin of the SHA-256 of the plugin's file.
  std::string config;   // Begin of the SHA-256 of the settings that hosts share; "none": no config.
  std::string kernel;
  std::string machine;  // The boot's id, the same for two names of one machine.
  int cpus = 0;         // Those that the process may use.
  std::vector<NicFacts> nics;
};

// One host of a probe.
struct Host {
  std::string name;
  std::string failure;  // The reason for not measuring it, or not to the end; empty: none.
  bool has_facts = false;
  HostFacts facts;
  double clock_offset_s = 0;  // Ahead of the coordinator's clock.
  double clock_error_s = 0;   // The offset may be wrong by this much: half a round trip.
};

// Hosts with one value.
struct Group {
  std::string value;
  std::vector<std::size_t> hosts;
};

struct Difference {
  std::string what;       // "version", "MTU of ztcp0"
  bool is_fault = false;  // Otherwise worth knowing only.
  // The most frequent value first. A single one: hosts that should have different values.
  std::vector<Group> groups;
};

// Clocks that differ by more are reported.
inline constexpr double kClockToleranceSeconds = 0.1;

// Compares all hosts that have facts.
std::vector<Difference> compare(const std::vector<Host>& hosts);

// "hosts differ in version: 0.1.0 on 62 hosts, 0.0.9 on gpu07": a line for a reader.
std::string describe(const Difference& difference, const std::vector<Host>& hosts);
// "gpu01, gpu02, gpu03 and 7 more".
std::string names_of(const std::vector<std::size_t>& members, const std::vector<Host>& hosts);

}  // namespace ztcp::perf::probe
