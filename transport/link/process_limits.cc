// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/process_limits.h"

#include <cstdint>
#include <dirent.h>
#include <sys/resource.h>

#include <fmt/format.h>

namespace ztcp::link {
namespace {

// Each of our NICs needs about twenty, and each memif peer six.
constexpr std::uint64_t kSpareDescriptors = 32;

// For both directions and their descriptors.
constexpr std::uint64_t kRingBytes = 16U << 20;

// Returns the limit when not even the list of descriptors can be opened.
std::uint64_t open_descriptors(std::uint64_t limit) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return limit;
  std::uint64_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count - 3;  // Without "." and "..", and the list's own.
}

}  // namespace

std::string advice_on_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const std::uint64_t open = open_descriptors(limit.rlim_cur);
    if (open + kSpareDescriptors > limit.rlim_cur)
      return fmt::format("raise ulimit -n: this process may open {} files and has {} open",
                         limit.rlim_cur, open);
  }
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kRingBytes)
    return fmt::format(
        "raise ulimit -f: this process may write files of {} KiB, and memif's shared "
        "memory, of up to {} MiB, counts as one",
        limit.rlim_cur >> 10U, kRingBytes >> 20U);
  return {};
}

std::string advice_on_limits() {
  std::string advice = advice_on_files();
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    advice += fmt::format(
        "{}lift ulimit -v: this process may have {} MiB of addresses, and DPDK "
        "sets aside far more than it uses",
        advice.empty() ? "" : "; ", limit.rlim_cur >> 20U);
  return advice;
}

}  // namespace ztcp::link
