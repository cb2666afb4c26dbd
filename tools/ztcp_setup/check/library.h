// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which libnccl-net.so the loader would give to NCCL, and whose it is.
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

// The library that NCCL opens where NCCL_NET_PLUGIN does not name one.
config::Check check_library(const JobEnvironment& job);
// The one that it opens for `plugin`, the variable's value: a file, or a name by which the loader
// looks for libnccl-net-NAME.so. `variable` is what messages call it, `mend` what removes it.
config::Check check_named_library(const JobEnvironment& job, const std::string& plugin,
                                  const std::string& variable, const std::string& mend);

}  // namespace ztcp::setup
