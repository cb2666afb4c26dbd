// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/locked_memory.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

namespace ztcp::link::xdp {
namespace {

bool may_lock_any_amount() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & 1U << CAP_IPC_LOCK) != 0;
}

}  // namespace

std::string locked_memory_shortage(std::uint64_t needed_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      limit.rlim_cur >= needed_bytes || may_lock_any_amount())
    return {};
  return fmt::format(
      "{} KiB of memory, and this process may lock {} KiB (ulimit -l): run ulimit -l "
      "unlimited, docker run --ulimit memlock=-1, or set LimitMEMLOCK=infinity in the service",
      needed_bytes >> 10U, limit.rlim_cur >> 10U);
}

}  // namespace ztcp::link::xdp
