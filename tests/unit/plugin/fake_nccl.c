/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * A library with a version and a profiler callback of its own, as NCCL has. */
#include "plugin/abi/nccl_abi.h"

int fake_nccl_version = 22605;
int fake_nccl_calls = 0;

ncclResult_t ncclGetVersion(int* version) {
  *version = fake_nccl_version;
  return ncclSuccess;
}

ncclResult_t fake_nccl_callback(void** eHandle, int type, void* pHandle, int64_t pluginId,
                                void* extData) {
  (void)eHandle;
  (void)type;
  (void)pHandle;
  (void)pluginId;
  (void)extData;
  ++fake_nccl_calls;
  return ncclSuccess;
}
