// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether this process is in a container, whose files say nothing about the host.
#pragma once

#include "config/machine/machine.h"

namespace ztcp::config {

// By the marks that runtimes leave, and by mounts that only containers have.
bool in_container(Machine& machine);

}  // namespace ztcp::config
