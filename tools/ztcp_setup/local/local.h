// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_setup --local N`: a fabric inside one machine, N ranks on shared-memory NICs, joined
// directly or by ztcp_switch. Needs no root, no hugepages and no NIC.
#pragma once

#include <cstdint>
#include <string>

#include <tl/expected.hpp>

#include "config/problem.h"
#include "config/settings.h"

namespace ztcp::setup {

enum class LocalTopology : std::uint8_t {
  kMesh,    // Each NIC shares memory with each other one; no further process.
  kSwitch,  // Every NIC is a client of ztcp_switch, on a socket of its own.
};

struct LocalRequest {
  // Of a mesh: each rank copies into the rings of all others, so many soon outgrow the cache.
  static constexpr unsigned kMaxMeshRanks = 16;

  unsigned ranks = 2;
  std::string folder = "ztcp-local";
  LocalTopology topology = LocalTopology::kMesh;
  unsigned mtu_bytes = 9000;
  unsigned queues = 0;  // Of each NIC of a mesh; 0: as many as `cpus` suffice for.
  unsigned cpus = 1;    // That the ranks have together.
};

// What was asked as a fabric, or why it can't be.
tl::expected<config::Fabric, config::Problem> plan_local(const LocalRequest& request);
// Makes the folders and writes fabric.path. Writes over an earlier local fabric, never over the
// config of a real host.
tl::expected<void, config::Problem> write_local(const config::Fabric& fabric);

}  // namespace ztcp::setup
