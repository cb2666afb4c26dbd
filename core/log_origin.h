// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The origin of log lines, for ranks of several hosts that write to one file or whose files are
// compared. Pure: host, pid and environment are arguments.
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>

namespace ztcp::log {

// ZTCP_LOG with %h replaced by the host's name and %p by the pid, as in NCCL_DEBUG_FILE: "%%" is a
// percent sign, any other "%c" stays.
std::string expand_name(std::string_view pattern, std::string_view host, pid_t pid);

// "gpu1 rank 3", or "gpu1" where no launcher sets the rank (RANK, OMPI_COMM_WORLD_RANK, PMI_RANK,
// SLURM_PROCID, in this order: the first three belong to this process, while a shell inside an
// allocation has the last one, too). `variables` is an environ-like array.
std::string origin_of(std::string_view host, const char* const* variables);

// The process's place in its job, by the variables of torchrun, Open MPI, PMI and SLURM, in this
// order; -1, or 0 ranks: no launcher sets it.
struct LauncherRanks {
  int rank = -1;
  int ranks = 0;
  int local_rank = -1;
};
LauncherRanks launcher_ranks(const char* const* variables);

// The host's name up to its first dot. Empty where the kernel does not tell.
std::string short_host_name();

}  // namespace ztcp::log
