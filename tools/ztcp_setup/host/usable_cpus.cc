// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/usable_cpus.h"

#include "config/machine/cgroup.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::setup {

UsableCpus usable_cpus(config::Machine& machine) {
  UsableCpus cpus;
  cpus.list = config::status_field(machine, "Cpus_allowed_list").value_or("");
  for (const std::string_view part : config::split(cpus.list, ',')) {
    const auto dash = part.find('-');
    const auto first = config::leading_number(part);
    const auto last =
        dash == std::string_view::npos ? first : config::leading_number(part.substr(dash + 1));
    cpus.listed += last >= first ? last - first + 1 : 0;
  }
  cpus.quota = config::cpu_quota(machine);
  return cpus;
}

}  // namespace ztcp::setup
