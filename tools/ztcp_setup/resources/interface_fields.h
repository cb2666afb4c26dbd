// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The recorded state of a network interface, as the journal keeps it.
#pragma once

#include "tools/ztcp_setup/host/interface_state.h"
#include "tools/ztcp_setup/resources/fields.h"

namespace ztcp::setup {

void interface_fields(Fields& fields, InterfaceState& state);

}  // namespace ztcp::setup
