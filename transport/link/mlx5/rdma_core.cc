// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/mlx5/rdma_core.h"

#include <array>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "core/shared_library.h"
#include "transport/link/mlx5/rdma_core_calls.h"

// Defined in rdma_core_jumps.cc.
#define ZTCP_SLOT(name, version) \
  extern "C" __attribute__((visibility("hidden"))) void* ztcp_slot_##name;
ZTCP_RDMA_CORE_CALLS(ZTCP_SLOT, ZTCP_SLOT, ZTCP_SLOT)
#undef ZTCP_SLOT

namespace ztcp::link::mlx5 {
namespace {

#define ZTCP_VERBS(name, version) RdmaCoreCall{#name, version, true, false, &ztcp_slot_##name},
#define ZTCP_MLX5(name, version) RdmaCoreCall{#name, version, false, false, &ztcp_slot_##name},
#define ZTCP_LATER(name, version) RdmaCoreCall{#name, version, false, true, &ztcp_slot_##name},
const std::array kCalls{ZTCP_RDMA_CORE_CALLS(ZTCP_VERBS, ZTCP_MLX5, ZTCP_LATER)};
#undef ZTCP_VERBS
#undef ZTCP_MLX5
#undef ZTCP_LATER

// In place of a function that came later. Its caller passes arguments, which both calling
// conventions let a function ignore.
void* refuse() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

std::span<const RdmaCoreCall> rdma_core_calls() { return kCalls; }

Result<void, std::string> load_rdma_core(const RdmaCoreNames& names) {
  void* const verbs = ZTCP_TRY(open_shared_library(names.verbs, kVerbsPackages));
  void* const mlx5 = ZTCP_TRY(open_shared_library(names.mlx5, kVerbsPackages));
  std::vector<void*> found;
  for (const RdmaCoreCall& call : kCalls) {
    void* function = find_symbol(call.is_of_verbs ? verbs : mlx5, call.name, call.version);
    if (function == nullptr && call.came_later) function = reinterpret_cast<void*>(refuse);
    if (function == nullptr)
      return tl::unexpected(fmt::format("{} has no {}@{}: rdma-core 36 or newer has it",
                                        call.is_of_verbs ? names.verbs : names.mlx5, call.name,
                                        call.version));
    found.push_back(function);
  }
  for (std::size_t i = 0; i < kCalls.size(); ++i) *kCalls[i].slot = found[i];
  return {};
}

}  // namespace ztcp::link::mlx5
