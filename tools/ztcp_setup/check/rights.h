// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The checks that --check makes for other users: whether the config's user and group can run jobs,
// and whether only root can change the files that jobs trust. Root is never denied access, so
// owners and modes are compared.
#pragma once

#include <string>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

std::vector<config::Check> check_rights(const config::Fabric& fabric, Host& host);

}  // namespace ztcp::setup
