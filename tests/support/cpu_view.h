// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// CPUs that a process might see.
#pragma once

#include <cstddef>
#include <numeric>

#include "transport/comms/poller_policy.h"

namespace ztcp::test {

// The first `allowed` of those that are online, with a cgroup's quota or none.
inline comms::CpuView cpus(std::size_t allowed, std::size_t online, std::size_t quota = 0) {
  comms::CpuView view;
  view.allowed.resize(allowed);
  std::iota(view.allowed.begin(), view.allowed.end(), 0U);
  view.online = online;
  view.quota = quota;
  return view;
}

}  // namespace ztcp::test
