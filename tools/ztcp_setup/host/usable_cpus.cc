// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/usable_cpus.h"

#include "config/machine/cgroup.h"
#include "config/machine/cpu_list.h"
#include "config/machine/readings.h"

namespace ztcp::setup {

UsableCpus usable_cpus(config::Machine& machine) {
  UsableCpus cpus;
  cpus.list = config::status_field(machine, "Cpus_allowed_list").value_or("");
  cpus.listed = config::parse_cpu_list(cpus.list).size();
  cpus.quota = config::cpu_quota(machine);
  return cpus;
}

}  // namespace ztcp::setup
