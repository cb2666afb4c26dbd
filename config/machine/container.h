// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether this process is in a container, whose files say nothing about the host, and how much of
// the CPUs the container's cgroups leave to it.
#pragma once

#include <cstddef>

#include "config/machine/roots.h"

namespace ztcp::config {

// By the marks that runtimes leave, and by mounts that only containers have.
bool in_container(const Roots& roots);

// CPUs' worth of time, by the tightest limit of the cgroups around this process; 0: no limit.
std::size_t cpu_quota(const Roots& roots);

}  // namespace ztcp::config
