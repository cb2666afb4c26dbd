// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// From what was decided to what is wanted of the machine, at the first run, at the second and at
// boot.
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
  std::string config_text;  // Of fabric.path.
  std::uint32_t config_mode = 0644;
  std::string config_group;  // Empty: root.
  bool wants_peer_memory = false;
  std::string unit_text;  // Of the boot unit, where no package brought it; may be empty.
};

// Some depend on what the distribution has.
Resources resources_for(const config::Fabric& fabric, const PlanParts& parts, Host& host);

// Ours, from a package: not the one that set-up itself writes.
bool has_packaged_unit(Host& host);

}  // namespace ztcp::setup
