// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Any text is either refused, with the place of the fault, or makes a fabric that is the same after
// it was written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/file/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ztcp::config;
  const LoadResult result =
      parse({reinterpret_cast<const char*>(data), size}, "/etc/ztcp/ztcp.conf");
  if (!result.fabric) {
    for (const Problem& problem : result.problems)
      if (!problem.where.starts_with("/etc/ztcp/ztcp.conf:") || problem.what.empty()) std::abort();
    if (result.problems.empty()) std::abort();
    return 0;
  }
  const LoadResult again = parse(to_toml(*result.fabric), result.path);
  if (!again.fabric || *again.fabric != *result.fabric) std::abort();
  return 0;
}
