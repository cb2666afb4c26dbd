// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/rank_place.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

int local_rank(const Options& options, Bootstrap& bootstrap) {
  std::string machine;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> machine;
  const auto all = bootstrap.all_gather(std::as_bytes(std::span(machine)));
  if (options.local_rank) return *options.local_rank;
  const auto mine = all.begin() + *options.rank;
  return static_cast<int>(std::count(all.begin(), mine, *mine));
}

}  // namespace

int settle_local_rank(const Options& options, Bootstrap& bootstrap) {
  const int local = local_rank(options, bootstrap);
  setenv("ZTCP_LOCAL_RANK", std::to_string(local).c_str(), 1);
  // For the statistics page and the log.
  setenv("RANK", std::to_string(*options.rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(local).c_str(), 1);
  return local;
}

int choose_device(Net& net, const Options& options, int local_rank) {
  int count = 0;
  const ncclResult_t result = net.devices(&count);
  if (result != ncclSuccess) fail("devices() failed: {}", name_of(result));
  if (count <= 0) fail("the plugin has no devices");
  const int device = options.device.value_or(local_rank % count);
  if (device >= count) fail("--device {}: the plugin has {} devices", device, count);
  return device;
}

}  // namespace ztcp::perf
