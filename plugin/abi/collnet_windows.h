// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Adapters from NCCL's iallgather and ireducescatter to the version-free calls
// (plugin/collnet_windows.h), and what they share with the other adapters of CollNet (collnet.cc).
#pragma once

#include "plugin/abi/nccl_collnet.h"
#include "plugin/collnet_group.h"

namespace ztcp::plugin::abi {

inline CollGroup& group_of(void* comm) { return *static_cast<CollGroup*>(comm); }
inline SharedMemory* memory_of(void* mhandle) { return static_cast<SharedMemory*>(mhandle); }

inline bool is_reduced(ncclDataType_t type, ncclRedOp_t operation) {
  return type >= ncclInt8 && type <= ncclBfloat16 && operation >= ncclSum && operation <= ncclMin;
}
// Both enumerations have NCCL's order.
inline reduce::ElementType element_of(ncclDataType_t type) {
  return static_cast<reduce::ElementType>(type);
}
inline reduce::Reduction reduction_of(ncclRedOp_t operation) {
  return static_cast<reduce::Reduction>(operation);
}

ncclCollNetIallgather_v8_t coll_iallgather_v8;
ncclCollNetIallgather_v9_t coll_iallgather_v9;
ncclCollNetIreducescatter_v8_t coll_ireducescatter_v8;
ncclCollNetIreducescatter_v9_t coll_ireducescatter_v9;

}  // namespace ztcp::plugin::abi
