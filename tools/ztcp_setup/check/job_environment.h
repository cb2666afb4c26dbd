// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What --check looks at beside the config: the variables that NCCL will see, the library it will
// load, and the CPUs there are for pollers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/check/check.h"
#include "config/network/network.h"
#include "config/settings.h"

namespace ztcp::setup {

using Variables = std::map<std::string, std::string, std::less<>>;
Variables variables_of(const char* const* environment);

struct JobEnvironment {
  config::Machine& machine;
  Variables variables;
  std::string program;            // This one: ztcp's plugin is installed near it.
  std::string default_interface;  // Empty: there is no default route.
};

// The one of the best default route that traffic takes; empty: there is none.
std::string default_interface(const config::Network& network);

std::vector<config::Check> check_job_environment(const config::Fabric& fabric,
                                                 const JobEnvironment& job);

}  // namespace ztcp::setup
