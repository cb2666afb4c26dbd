// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which GPU this process drives: the one file that talks to CUDA.
//
// The driver library is used only if the process has loaded it already, and cuInit() is never
// called: it costs a second on a large host and makes CUDA unusable in children forked later. In
// a process that has not initialised CUDA every question is answered "unknown".
#pragma once

#include "config/check.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {

// Takes note of the calling thread's GPU. Called from v11 init, where NCCL has made the
// communicator's GPU current; its proxy threads have none current on CUDA before 12.
void remember_current_gpu() noexcept;

// ZTCP_LOCAL_RANK as it was at start-up; -1: unset. Later the environment is not looked at any
// more: connections are made at any time, while the application may be changing it.
void remember_local_rank(int rank) noexcept;

// The calling thread's GPU; else the one noted last; else the only one with an active context;
// else the only visible one; else unknown. local_rank is the remembered one.
ustack::GpuIdentity probe_gpu();

// PCI addresses of all visible GPUs, for comparison with the config.
config::GpuList visible_gpus();

}  // namespace ztcp::plugin
