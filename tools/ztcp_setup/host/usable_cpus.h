// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The CPUs that a job will have, if it is started as this process was.
#pragma once

#include <cstddef>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::setup {

struct UsableCpus {
  std::string list;        // Of its mask: "0-3,8"; empty: it can't be read.
  std::size_t listed = 0;  // How many these are.
  std::size_t quota = 0;   // CPUs' worth of time by the cgroups around it; 0: no limit.

  bool limited() const { return quota != 0 && quota < listed; }
  std::size_t count() const { return limited() ? quota : listed; }
};

UsableCpus usable_cpus(config::Machine& machine);

}  // namespace ztcp::setup
