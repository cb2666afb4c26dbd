/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's tuner interface, versions 3 to 5, in our own declarations: NCCL 2.22 to 2.29 look for it
 * in the library of the network, 2.30 still does where there is no version 6. Version 2, of NCCL
 * 2.21, is left out: NCCL 2.21 uses the tuner's answer unchecked, even if it has fewer channels.
 * 2.22 and 2.23 are not tuned, either: older NCCL shares their network table (connections.cc).
 * Names and layouts are NCCL's, compared with its headers by
 * tests/unit/plugin/nccl_tuner_headers_check.cc when -Dnccl_tuner_headers=PATH is given.
 */
// NOLINTBEGIN: NCCL's names, C's ways.
#pragma once

#include "plugin/abi/nccl_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ncclFuncBroadcast = 0,
  ncclFuncReduce = 1,
  ncclFuncAllGather = 2,
  ncclFuncReduceScatter = 3,
  ncclFuncAllReduce = 4,
} ncclFunc_t;

/* Rows and columns of the table of costs. */
enum {
  NCCL_ALGO_TREE = 0,
  NCCL_ALGO_RING = 1,
  NCCL_ALGO_COLLNET_DIRECT = 2,
  NCCL_ALGO_COLLNET_CHAIN = 3,
  NCCL_ALGO_NVLS = 4, /* Between hosts over CollNet. */
  NCCL_ALGO_PAT = 6   /* 2.23 */
};
enum { NCCL_PROTO_LL = 0, NCCL_PROTO_LL128 = 1, NCCL_PROTO_SIMPLE = 2 };

typedef ncclResult_t ncclTunerInit_v3_t(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction,
                                        void** context);
/* The last two hold NVLink domains and NCCL's own model; neither is read. */
typedef ncclResult_t ncclTunerInit_v5_t(void** context, uint64_t commId, size_t nRanks,
                                        size_t nNodes, ncclDebugLogger_t logFunction,
                                        void* nvlDomainInfo, void* constants);

/* collCostTable is float[numAlgo][numProto], although declared otherwise: microseconds, or -1 for
 * combinations that NCCL will not use. *nChannels stays 0 for NCCL's own number. */
typedef ncclResult_t ncclTunerGetCollInfo_v3_t(void* context, ncclFunc_t collType, size_t nBytes,
                                               int numPipeOps, float** collCostTable, int numAlgo,
                                               int numProto, int* nChannels);
typedef ncclResult_t ncclTunerGetCollInfo_v4_t(void* context, ncclFunc_t collType, size_t nBytes,
                                               int numPipeOps, float** collCostTable, int numAlgo,
                                               int numProto, int regBuff, int* nChannels);

typedef ncclResult_t ncclTunerDestroy_v3_t(void* context);

typedef struct {
  const char* name;
  ncclTunerInit_v3_t* init;
  ncclTunerGetCollInfo_v3_t* getCollInfo;
  ncclTunerDestroy_v3_t* destroy;
} ncclTuner_v3_t;

typedef struct {
  const char* name;
  ncclTunerInit_v3_t* init;
  ncclTunerGetCollInfo_v4_t* getCollInfo;
  ncclTunerDestroy_v3_t* destroy;
} ncclTuner_v4_t;

typedef struct {
  const char* name;
  ncclTunerInit_v5_t* init;
  ncclTunerGetCollInfo_v4_t* getCollInfo;
  ncclTunerDestroy_v3_t* finalize;
} ncclTuner_v5_t;
static_assert(sizeof(ncclTuner_v3_t) == 32, "tuner v3");
static_assert(sizeof(ncclTuner_v5_t) == 32, "tuner v5");
static_assert(offsetof(ncclTuner_v3_t, getCollInfo) == 16, "tuner v3");
static_assert(offsetof(ncclTuner_v5_t, finalize) == 24, "tuner v5");

#ifdef __cplusplus
}  // extern "C"
#endif
// NOLINTEND
