// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the GPUs that this process drives. The only file that talks to CUDA.
//
// The driver library is used only if the process has loaded it already, and cuInit() is never
// called: it costs a second on a large host and makes CUDA unusable in children forked later. In a
// process that has not initialised CUDA every query answers "unknown".
#pragma once

#include "config/check/check.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {

// Records the calling thread's current GPU as one that a communicator drives. Called where NCCL has
// made the communicator's GPU current: in init of v11 and later, in getProperties, which NCCL calls
// on the same thread, and in listen and connect. NCCL's proxy threads have no current GPU with CUDA
// before 12. Not called in init of older tables: there any GPU may be current.
void remember_current_gpu() noexcept;

// Records the start-up value of ZTCP_LOCAL_RANK; -1: unset. The environment is not read later:
// connections are made at any time, while the application may be changing it.
void remember_local_rank(int rank) noexcept;

// `driven` holds the recorded GPUs; without one, the only GPU with an active context, else the only
// visible one. `current` is the calling thread's GPU, else the only driven one. local_rank is the
// recorded one.
ustack::ProcessGpus view_gpus();
// The same, called on a communicator's thread, whose current GPU is recorded first.
ustack::ProcessGpus probe_gpus();

// PCI addresses of all visible GPUs, to compare with the config.
config::GpuList visible_gpus();

}  // namespace ztcp::plugin
