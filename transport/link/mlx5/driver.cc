// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/mlx5/driver.h"

#include <mutex>
#include <optional>
#include <span>

#include "transport/link/mlx5/rdma_core.h"

// The driver's constructors, in sections that the build named after their priority; the linker
// marks the ends. A release of DPDK may lack one of them.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names.
using Constructor = void (*)();
#define ZTCP_SECTION(priority)                           \
  extern "C" __attribute__((weak, visibility("hidden"))) \
  const Constructor __start_ztcp_mlx5_init_##priority[]; \
  extern "C" __attribute__((weak, visibility("hidden"))) \
  const Constructor __stop_ztcp_mlx5_init_##priority[];
ZTCP_SECTION(101)
ZTCP_SECTION(110)
ZTCP_SECTION(120)
ZTCP_SECTION(last)
#undef ZTCP_SECTION

extern "C" {
// The driver's settings of libmlx5, by variables: other threads of the job may be reading the
// environment, and the job's children would inherit them. libmlx5 works without.
int __wrap_setenv(const char* name, const char* value, int overwrites);
int __wrap_unsetenv(const char* name);
int __wrap_setenv(const char*, const char*, int) { return 0; }
int __wrap_unsetenv(const char*) { return 0; }
}

namespace ztcp::link::mlx5 {
namespace {

void run(const Constructor* first, const Constructor* last) {
  for (; first != last; ++first) (*first)();
}

Result<void, std::string> start() {
  ZTCP_CHECK(load_rdma_core());
  run(__start_ztcp_mlx5_init_101, __stop_ztcp_mlx5_init_101);
  run(__start_ztcp_mlx5_init_110, __stop_ztcp_mlx5_init_110);
  run(__start_ztcp_mlx5_init_120, __stop_ztcp_mlx5_init_120);
  run(__start_ztcp_mlx5_init_last, __stop_ztcp_mlx5_init_last);
  return {};
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // namespace

Result<void, std::string> start_driver() {
  static std::mutex mutex;
  static std::optional<Result<void, std::string>> outcome;
  const std::scoped_lock lock(mutex);
  if (!outcome) outcome = start();
  return *outcome;
}

}  // namespace ztcp::link::mlx5
