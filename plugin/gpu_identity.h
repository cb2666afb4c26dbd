// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which GPUs this process drives: the one file that talks to CUDA.
//
// The driver library is used only if the process has loaded it already, and cuInit() is never
// called: it costs a second on a large host and makes CUDA unusable in children forked later. In
// a process that has not initialised CUDA every question is answered "unknown".
#pragma once

#include "config/check/check.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {

// Takes note of the calling thread's GPU as one that a communicator drives. Called where NCCL has
// made the communicator's GPU current: in init of v11 and later, in getProperties, which NCCL asks
// on the same thread, and in listen and connect. Its proxy threads have none current on CUDA before
// 12. Not in init of older tables: a process may call that with any GPU current.
void remember_current_gpu() noexcept;

// ZTCP_LOCAL_RANK as it was at start-up; -1: unset. Later the environment is not looked at any
// more: connections are made at any time, while the application may be changing it.
void remember_local_rank(int rank) noexcept;

// `driven` are the GPUs noted; none noted: the only one with an active context, else the only
// visible one. `current` is the calling thread's, else the only one driven. local_rank is the
// remembered one.
ustack::ProcessGpus view_gpus();
// The same from a thread of a communicator, whose GPU is noted.
ustack::ProcessGpus probe_gpus();

// PCI addresses of all visible GPUs, for comparison with the config.
config::GpuList visible_gpus();

}  // namespace ztcp::plugin
