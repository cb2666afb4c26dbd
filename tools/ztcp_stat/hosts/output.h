// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Merged reports as a table and as JSON. Pure.
#pragma once

#include <string>

#include "tools/ztcp_stat/hosts/merge.h"

namespace ztcp::stat::hosts {

std::string to_text(const Merged& merged);
std::string to_json(const Merged& merged, int exit_code);

}  // namespace ztcp::stat::hosts
