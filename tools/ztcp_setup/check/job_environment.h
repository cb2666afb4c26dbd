// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks around the config: the variables that NCCL will see, the library it will load, and the
// CPUs available to pollers.
#pragma once

#include <string>
#include <vector>

#include "config/check/check.h"
#include "config/network/network.h"
#include "config/settings.h"
#include "tools/common/nccl_variables.h"

namespace ztcp::setup {

struct JobEnvironment {
  config::Machine& machine;
  tools::Variables variables;
  std::string program;            // This program: ztcp's plugin is installed near it.
  std::string default_interface;  // Empty: no default route.
};

// The interface of the best default route; empty: none.
std::string default_interface(const config::Network& network);

std::vector<config::Check> check_job_environment(const config::Fabric& fabric,
                                                 const JobEnvironment& job);

}  // namespace ztcp::setup
