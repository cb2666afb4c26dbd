// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// CollNet at start-up: whether it is on, in which form sums travel, the sizes for which the tuner
// offers it, and the lines of the init log about these. Hosts compare the settings when a group
// connects (plugin/collnet_meeting.h).
//
// Threads: that of start_up() (plugin/startup.h).
#pragma once

#include "config/environment.h"
#include "config/settings.h"
#include "plugin/net.h"

namespace ztcp::plugin {

// As users write it.
const char* name_of(reduce::Wire wire);

// The variables of the environment override the config.
CollnetSettings choose_collnet(const config::Collnet& configured,
                               const config::Environment& environment);
// Needs the devices, one for each NIC: the speeds in plugin/collnet_sizes.h are those of whole
// NICs.
void choose_collnet_sizes(Startup& startup);
// Nothing where CollNet is off.
void say_collnet(const Startup& startup);

}  // namespace ztcp::plugin
