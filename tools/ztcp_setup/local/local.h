// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_setup --local N`: a fabric inside one machine, N ranks on shared-memory NICs, connected
// directly or through ztcp_switch. Needs no root, no hugepages and no NIC.
#pragma once

#include <cstdint>
#include <string>

#include "config/problem.h"
#include "config/settings.h"
#include "core/result.h"

namespace ztcp::setup {

enum class LocalTopology : std::uint8_t {
  kMesh,    // Each pair of NICs shares memory; no further process.
  kSwitch,  // Every NIC is a client of ztcp_switch, on a socket of its own.
};

struct LocalRequest {
  // For a mesh: each rank copies into the rings of all others, which soon outgrow the cache.
  static constexpr unsigned kMaxMeshRanks = 16;

  unsigned ranks = 2;
  std::string folder = "ztcp-local";
  LocalTopology topology = LocalTopology::kMesh;
  unsigned mtu_bytes = 9000;
  unsigned queues = 0;  // Per NIC of a mesh; 0: as many as `cpus` suffice for.
  unsigned cpus = 1;    // Available to all ranks together.
};

// The requested fabric, or the reason why it is impossible.
Result<config::Fabric, config::Problem> plan_local(const LocalRequest& request);
// Creates the folders and writes fabric.path. Overwrites an earlier local fabric, never the config
// of a real host.
Result<void, config::Problem> write_local(const config::Fabric& fabric);

}  // namespace ztcp::setup
