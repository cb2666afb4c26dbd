/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's environment interface, versions 1 (from NCCL 2.28.7 on) and 2 (from 2.30.7 on), in our own
 * declarations. NCCL asks the library for each variable that it reads, from any thread.
 */
// NOLINTBEGIN: NCCL's names, C's ways.
#pragma once

#include "plugin/abi/nccl_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef ncclResult_t ncclEnvInit_v1_t(uint8_t major, uint8_t minor, uint8_t patch,
                                      const char* suffix);
typedef ncclResult_t ncclEnvInit_v2_t(uint8_t major, uint8_t minor, uint8_t patch,
                                      const char* suffix, ncclDebugLogger_t logFunction);
typedef ncclResult_t ncclEnvFinalize_v1_t(void);
/* NULL: not set. The text stays valid until finalize, or until the next call with this name. */
typedef const char* ncclEnvGetEnv_v1_t(const char* name);

typedef struct {
  const char* name;
  ncclEnvInit_v1_t* init;
  ncclEnvFinalize_v1_t* finalize;
  ncclEnvGetEnv_v1_t* getEnv;
} ncclEnv_v1_t;

typedef struct {
  const char* name;
  ncclEnvInit_v2_t* init;
  ncclEnvFinalize_v1_t* finalize;
  ncclEnvGetEnv_v1_t* getEnv;
} ncclEnv_v2_t;

static_assert(sizeof(ncclEnv_v1_t) == 32 && offsetof(ncclEnv_v1_t, getEnv) == 24, "NCCL's layout");
static_assert(sizeof(ncclEnv_v2_t) == 32 && offsetof(ncclEnv_v2_t, getEnv) == 24, "NCCL's layout");

#ifdef __cplusplus
}
#endif
// NOLINTEND
