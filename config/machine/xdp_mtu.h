// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>
#include <limits>

#include "config/machine/readings.h"
#include "core/kernel_release.h"
#include "hugepage/xdp_memory.h"

namespace ztcp::config {

// The largest MTU that AF_XDP sockets of this kernel carry: before Linux 6.6 a frame has one
// buffer.
inline std::uint32_t largest_xdp_mtu(Machine& machine) {
  const auto release = read_line(machine, "/proc/sys/kernel/osrelease");
  return release && !release->empty() && kernel_version(*release) < KernelVersion{6, 6}
             ? hugepage::xdp_largest_mtu(1)
             : std::numeric_limits<std::uint32_t>::max();
}

}  // namespace ztcp::config
