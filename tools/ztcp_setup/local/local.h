// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_setup --local N`: a fabric inside one machine, N ranks on shared-memory NICs, joined by
// ztcp_switch or, two of them, directly. Needs no root, no hugepages and no NIC.
#pragma once

#include <cstdint>
#include <string>

#include <tl/expected.hpp>

#include "config/problem.h"
#include "config/settings.h"

namespace ztcp::setup {

enum class LocalTopology : std::uint8_t {
  kSwitch,  // Every NIC is a client of ztcp_switch, on a socket of its own.
  kPair,    // NIC 0 serves, NIC 1 is its client; no third process.
};

struct LocalRequest {
  unsigned ranks = 2;
  std::string folder = "ztcp-local";
  LocalTopology topology = LocalTopology::kSwitch;
  unsigned mtu_bytes = 9000;
};

// What was asked as a fabric, or why it can't be.
tl::expected<config::Fabric, config::Problem> plan_local(const LocalRequest& request);
// Makes the folders and writes fabric.path. Writes over an earlier local fabric, never over the
// config of a real host.
tl::expected<void, config::Problem> write_local(const config::Fabric& fabric);

}  // namespace ztcp::setup
