// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Derives the resources wanted of the machine from the decisions, at the first run, at later ones
// and at boot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings.h"
#include "tools/ztcp_setup/plan/boot_line.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup {

inline constexpr const char* kUnit = "ztcp-setup.service";

struct PlanParts {
  std::vector<NodePages> pages;
  Resources boot;           // The kernel command line; see boot_line.h.
  std::string config_text;  // The content of fabric.path.
  std::uint32_t config_mode = 0644;
  std::string config_group;  // Empty: root.
  bool wants_peer_memory = false;
  std::string unit_text;  // The boot unit's text, if no package brought it; may be empty.
};

// Some resources depend on the distribution.
Resources resources_for(const config::Fabric& fabric, const PlanParts& parts, Host& host);

// True for a unit from a package, not for the one that set-up itself writes.
bool has_packaged_unit(Host& host);

}  // namespace ztcp::setup
