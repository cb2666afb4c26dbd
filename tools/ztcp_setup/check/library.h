// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the libnccl-net.so that the loader would give to NCCL, and its origin.
#pragma once

#include <string>
#include <vector>

#include "config/check/check.h"
#include "tools/ztcp_setup/check/job_environment.h"

namespace ztcp::setup {

inline constexpr const char* kPluginFile = "libnccl-net.so";

// The folders the loader tries, in order: LD_LIBRARY_PATH, ld.so.conf, the built-in ones.
std::vector<std::string> loader_folders(const JobEnvironment& job);

// "ztcp", "aws-ofi-nccl", "NVIDIA's HPC-X"; empty: unknown.
std::string owner_of_plugin(config::Machine& machine, const std::string& path);

// Checks the library that NCCL opens if NCCL_NET_PLUGIN does not name one.
config::Check check_library(const JobEnvironment& job);
// Checks the library that NCCL opens for `plugin`, the variable's value: a path, or NAME in
// libnccl-net-NAME.so, which the loader searches for. `variable` is its name in messages, `mend`
// the command that removes it.
config::Check check_named_library(const JobEnvironment& job, const std::string& plugin,
                                  const std::string& variable, const std::string& mend);

}  // namespace ztcp::setup
