// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The CPUs of a job that is started like this process.
#pragma once

#include <cstddef>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::setup {

struct UsableCpus {
  std::string list;        // Its mask: "0-3,8"; empty: unreadable.
  std::size_t listed = 0;  // Number of CPUs in `list`.
  std::size_t quota = 0;   // CPU time that its cgroups grant, in CPUs; 0: no limit.

  bool limited() const { return quota != 0 && quota < listed; }
  std::size_t count() const { return limited() ? quota : listed; }
};

UsableCpus usable_cpus(config::Machine& machine);

}  // namespace ztcp::setup
