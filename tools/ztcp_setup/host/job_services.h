// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Services of this machine that start jobs: their jobs inherit the service's limits, without PAM.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

std::vector<std::string> job_services(Host& host);
// Whether the service has systemd's default limit of locked memory, a few MiB: no unit or drop-in
// raises it.
bool limits_memlock(Host& host, const std::string& service);

// systemd's folders for units, without a trailing slash: the administrator's, the running system's,
// then those of packages.
const std::vector<std::string>& unit_folders();

}  // namespace ztcp::setup
