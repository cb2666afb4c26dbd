// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/cpu_share.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "config/machine/cgroup.h"
#include "config/machine/cpu_list.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::config {
namespace {

constexpr const char* kNodeFolder = "/sys/devices/system/node";

// 0: no cgroup has a cpuset.
std::size_t cpuset_size(Machine& machine) {
  std::size_t tightest = 0;
  for (const Cgroup& cgroup : cgroups_of(machine, "cpuset")) {
    const char* const file =
        cgroup.version == 2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus";
    const std::size_t cpus = parse_cpu_list(text_of(machine, cgroup.folder + file)).size();
    if (cpus != 0) tightest = tightest == 0 ? cpus : std::min(tightest, cpus);
  }
  return tightest;
}

std::map<std::int32_t, std::vector<std::uint32_t>> read_nodes(Machine& machine) {
  std::map<std::int32_t, std::vector<std::uint32_t>> nodes;
  for (const std::string& name : machine.list(kNodeFolder)) {
    if (!name.starts_with("node")) continue;
    const auto number = parse_number(std::string_view(name).substr(4));
    if (!number) continue;
    nodes[static_cast<std::int32_t>(*number)] =
        parse_cpu_list(text_of(machine, fmt::format("{}/{}/cpulist", kNodeFolder, name)));
  }
  return nodes;
}

}  // namespace

LocalRanks local_ranks(Machine& machine) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                           "SLURM_STEP_TASKS_PER_NODE"})
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (const char* const text = std::getenv(name)) {
      // "8", or SLURM's "8(x2)".
      if (const std::size_t told = leading_number(text); told != 0) return {told, name};
    }
  const std::size_t gpus = machine.list("/proc/driver/nvidia/gpus").size();
  if (gpus != 0) return {gpus, fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s")};
  return {};
}

CpuShare read_cpu_share(Machine& machine) {
  CpuShare share;
  share.allowed = machine.allowed_cpus();
  const std::size_t online =
      parse_cpu_list(text_of(machine, "/sys/devices/system/cpu/online")).size();
  const std::size_t cpuset = cpuset_size(machine);
  share.common = online;
  if (cpuset != 0 && (online == 0 || cpuset < online)) share.common = cpuset;
  share.common = std::max(share.common, share.allowed.size());
  share.quota = cpu_quota(machine);
  share.nodes = read_nodes(machine);
  share.ranks = local_ranks(machine);
  return share;
}

}  // namespace ztcp::config
