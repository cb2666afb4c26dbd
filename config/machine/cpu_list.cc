// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/cpu_list.h"

#include <charconv>
#include <sched.h>

namespace ztcp::config {

std::vector<std::uint32_t> parse_cpu_list(std::string_view text) {
  std::vector<std::uint32_t> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::uint32_t first = 0;
    const auto number = std::from_chars(at, end, first);
    if (number.ec != std::errc{}) break;
    const char* after = number.ptr;
    std::uint32_t last = first;
    if (after < end && *after == '-') {
      const auto range = std::from_chars(after + 1, end, last);
      if (range.ec != std::errc{}) break;
      after = range.ptr;
    }
    for (std::uint32_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu) cpus.push_back(cpu);
    at = after < end && *after == ',' ? after + 1 : end;
  }
  return cpus;
}

}  // namespace ztcp::config
