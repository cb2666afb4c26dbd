// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What --check looks at for others: whether the user and group of the config may really run jobs,
// and whether nobody but root may change what jobs believe. Root sees no refusal of its own, so
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
