// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether this process is in a container. A container's files say nothing about the host.
#pragma once

#include "config/machine/machine.h"

namespace ztcp::config {

// Looks for the marks that runtimes leave, and for mounts that only containers have.
bool in_container(Machine& machine);

}  // namespace ztcp::config
