// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Permissions of the config that set-up writes. Without a secret everybody can read it; with a
// cluster_key only accounts that run jobs. Permissions that the administrator has narrowed stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

struct ConfigAccess {
  std::uint32_t mode = 0644;
  std::string group;  // Empty: root.
  // A fault where jobs could no longer read the file; a warning where its permissions change.
  std::optional<config::Check> note;
};
ConfigAccess config_access(Host& host, const config::Fabric& fabric);

}  // namespace ztcp::setup
