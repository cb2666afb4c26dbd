// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What set-up would do on this host: which NIC goes to which GPU, how many hugepages, which lines
// change. Reads the machine, changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/check.h"
#include "config/settings.h"
#include "config/topology.h"

namespace ztcp::setup {

struct HostClassFacts {
  char letter;          // 'A'
  const char* meaning;  // One sentence for the operator.
};
HostClassFacts facts_of(config::HostClass host_class);

// Pages of one NUMA node; node -1 is the whole machine, where NICs don't know theirs.
struct NodePages {
  std::int32_t node = -1;
  std::uint64_t want = 0;
  std::uint64_t have = 0;
};

struct Change {
  std::string what;     // "0000:1b:00.0 (ens1f0): bnxt_en -> vfio-pci"
  std::string command;  // The shell line that does it.
};

struct Note {
  config::Severity severity = config::Severity::kWarning;
  config::Problem problem;
};

struct Plan {
  config::Topology topology;
  std::vector<config::Pair> pairs;
  // Without it nothing can be set up, and the notes say why.
  std::optional<config::Fabric> fabric;
  std::vector<NodePages> pages;
  std::vector<Change> changes;
  std::vector<Note> notes;

  std::uint64_t hugepage_mib() const;
};

struct PlanInput {
  std::string root = "/";
  std::string config_path;                 // Where the config goes.
  config::InterfaceAddresses addresses;    // By interface.
  std::optional<config::Fabric> existing;  // A NIC that is taken already is described there.
};

Plan make_plan(const PlanInput& input);

}  // namespace ztcp::setup
