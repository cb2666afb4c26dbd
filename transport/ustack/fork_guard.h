// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Tells a forked child that it is one. Data loaders fork out of training processes; the child has
// our memory but neither our threads nor our NICs, so it must touch nothing. A page that the
// kernel wipes at fork is asked instead of getpid(): a load, not a system call, and right however
// the fork was made.
#pragma once

namespace ztcp::ustack {

// Marks this process as the owner. Repeated calls are harmless.
void arm_fork_guard();
// True in a child of the process that armed the guard.
bool in_forked_child();

}  // namespace ztcp::ustack
