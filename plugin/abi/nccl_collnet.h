/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's interface to a network that reduces, versions 6 to 12 (NCCL 2.13 to 2.31), in our own
 * declarations: see nccl_abi.h, whose types it shares. Compared with NCCL's headers by
 * tests/unit/plugin/nccl_collnet_headers_check.cc when -Dnccl_collnet_headers=PATH is given.
 */
// NOLINTBEGIN: NCCL's names, C's ways.
#pragma once

#include "plugin/abi/nccl_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
} ncclDataType_t; /* NCCL has more. */

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3 } ncclRedOp_t; /* Here too. */

typedef struct {
  void* mhandle;
  void* address;
  uint32_t size;
} ncclNetSGE_v8_t;
static_assert(sizeof(ncclNetSGE_v8_t) == 24, "scatter list v8");
static_assert(offsetof(ncclNetSGE_v8_t, size) == 16, "scatter list v8");

typedef struct {
  void* mhandle;
  void* address;
  size_t size;
} ncclNetSGE_v9_t; /* v9 to v12 */
static_assert(sizeof(ncclNetSGE_v9_t) == 24, "scatter list v9");

/* --- Signatures, each named after the first version that has it, of v6 to v12 ----------------- */

typedef ncclResult_t ncclCollNetInit_v6_t(ncclDebugLogger_t log);
typedef ncclResult_t ncclCollNetInit_v11_t(void** ctx, uint64_t commId, ncclDebugLogger_t log);
/* Blocks. `handles` are those of listen() on all ranks, in their order. */
typedef ncclResult_t ncclCollNetConnect_v6_t(void* handles[], int nranks, int rank,
                                             void* listenComm, void** collComm);
typedef ncclResult_t ncclCollNetReduceSupport_v6_t(ncclDataType_t dataType, ncclRedOp_t redOp,
                                                   int* supported);
typedef ncclResult_t ncclCollNetIallreduce_v6_t(void* collComm, void* sendData, void* recvData,
                                                int count, ncclDataType_t dataType,
                                                ncclRedOp_t redOp, void* sendMhandle,
                                                void* recvMhandle, void** request);
typedef ncclResult_t ncclCollNetIallreduce_v9_t(void* collComm, void* sendData, void* recvData,
                                                size_t count, ncclDataType_t dataType,
                                                ncclRedOp_t redOp, void* sendMhandle,
                                                void* recvMhandle, void** request);
typedef ncclResult_t ncclCollNetIallgather_v8_t(void* collComm, void* sendData, int nRecvParts,
                                                ncclNetSGE_v8_t* recvParts, size_t bytesPerRank,
                                                size_t windowOffset, size_t windowBytes,
                                                void* sendMhandle, void** request);
typedef ncclResult_t ncclCollNetIallgather_v9_t(void* collComm, void* sendData, int nRecvParts,
                                                ncclNetSGE_v9_t* recvParts, size_t bytesPerRank,
                                                size_t windowOffset, size_t windowBytes,
                                                void* sendMhandle, void** request);
typedef ncclResult_t ncclCollNetIreducescatter_v8_t(void* collComm, int nSendParts,
                                                    ncclNetSGE_v8_t* sendParts, void* recvData,
                                                    size_t bytesPerRank, size_t windowOffset,
                                                    size_t windowBytes, ncclDataType_t dataType,
                                                    ncclRedOp_t redOp, void* recvMhandle,
                                                    void** request);
typedef ncclResult_t ncclCollNetIreducescatter_v9_t(void* collComm, int nSendParts,
                                                    ncclNetSGE_v9_t* sendParts, void* recvData,
                                                    size_t bytesPerRank, size_t windowOffset,
                                                    size_t windowBytes, ncclDataType_t dataType,
                                                    ncclRedOp_t redOp, void* recvMhandle,
                                                    void** request);
typedef ncclResult_t ncclCollNetIflush_v6_t(void* collComm, void* data, int size, void* mhandle,
                                            void** request);

/* --- Tables ----------------------------------------------------------------------------------- */

typedef struct {
  const char* name;
  ncclCollNetInit_v6_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v5_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclCollNetConnect_v6_t* connect;
  ncclCollNetReduceSupport_v6_t* reduceSupport;
  ncclNetRegMr_v3_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclCollNetIallreduce_v6_t* iallreduce;
  ncclCollNetIflush_v6_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeColl;
  ncclNetClose_v3_t* closeListen;
} ncclCollNet_v6_t;
static_assert(sizeof(ncclCollNet_v6_t) == 120, "collective table v6");
static_assert(offsetof(ncclCollNet_v6_t, iallreduce) == 80, "collective table v6");
static_assert(offsetof(ncclCollNet_v6_t, closeListen) == 112, "collective table v6");

typedef struct {
  const char* name;
  ncclCollNetInit_v6_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v7_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclCollNetConnect_v6_t* connect;
  ncclCollNetReduceSupport_v6_t* reduceSupport;
  ncclNetRegMr_v3_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclCollNetIallreduce_v6_t* iallreduce;
  ncclCollNetIflush_v6_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeColl;
  ncclNetClose_v3_t* closeListen;
} ncclCollNet_v7_t;
static_assert(sizeof(ncclCollNet_v7_t) == 120, "collective table v7");
static_assert(offsetof(ncclCollNet_v7_t, iallreduce) == 80, "collective table v7");
static_assert(offsetof(ncclCollNet_v7_t, closeListen) == 112, "collective table v7");

typedef struct {
  const char* name;
  ncclCollNetInit_v6_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v8_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclCollNetConnect_v6_t* connect;
  ncclCollNetReduceSupport_v6_t* reduceSupport;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclCollNetIallreduce_v6_t* iallreduce;
  ncclCollNetIallgather_v8_t* iallgather;         /* May be NULL. */
  ncclCollNetIreducescatter_v8_t* ireducescatter; /* May be NULL. */
  ncclCollNetIflush_v6_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeColl;
  ncclNetClose_v3_t* closeListen;
} ncclCollNet_v8_t;
static_assert(sizeof(ncclCollNet_v8_t) == 136, "collective table v8");
static_assert(offsetof(ncclCollNet_v8_t, iallreduce) == 80, "collective table v8");
static_assert(offsetof(ncclCollNet_v8_t, iflush) == 104, "collective table v8");
static_assert(offsetof(ncclCollNet_v8_t, closeListen) == 128, "collective table v8");

typedef struct {
  const char* name;
  ncclCollNetInit_v6_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v9_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclCollNetConnect_v6_t* connect;
  ncclCollNetReduceSupport_v6_t* reduceSupport;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclCollNetIallreduce_v9_t* iallreduce;
  ncclCollNetIallgather_v9_t* iallgather;
  ncclCollNetIreducescatter_v9_t* ireducescatter;
  ncclCollNetIflush_v6_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeColl;
  ncclNetClose_v3_t* closeListen;
  ncclNetMakeVDevice_v9_t* makeVDevice; /* May be NULL. */
} ncclCollNet_v9_t;
static_assert(sizeof(ncclCollNet_v9_t) == 144, "collective table v9");
static_assert(offsetof(ncclCollNet_v9_t, iallreduce) == 80, "collective table v9");
static_assert(offsetof(ncclCollNet_v9_t, iflush) == 104, "collective table v9");
static_assert(offsetof(ncclCollNet_v9_t, makeVDevice) == 136, "collective table v9");

typedef ncclCollNet_v9_t ncclCollNet_v10_t;

typedef struct {
  const char* name;
  ncclCollNetInit_v11_t* init; /* Once per communicator, after the net table's. */
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v11_t* getProperties;
  ncclNetListen_v11_t* listen;
  ncclCollNetConnect_v6_t* connect;
  ncclCollNetReduceSupport_v6_t* reduceSupport;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclCollNetIallreduce_v9_t* iallreduce;
  ncclCollNetIallgather_v9_t* iallgather;
  ncclCollNetIreducescatter_v9_t* ireducescatter;
  ncclCollNetIflush_v6_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeColl;
  ncclNetClose_v3_t* closeListen;
  ncclNetMakeVDevice_v9_t* makeVDevice;
  ncclNetFinalize_v11_t* finalize;
} ncclCollNet_v11_t;
static_assert(sizeof(ncclCollNet_v11_t) == 152, "collective table v11");
static_assert(offsetof(ncclCollNet_v11_t, iallreduce) == 80, "collective table v11");
static_assert(offsetof(ncclCollNet_v11_t, iflush) == 104, "collective table v11");
static_assert(offsetof(ncclCollNet_v11_t, finalize) == 144, "collective table v11");

typedef struct {
  const char* name;
  ncclCollNetInit_v11_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v12_t* getProperties;
  ncclNetListen_v11_t* listen;
  ncclCollNetConnect_v6_t* connect;
  ncclCollNetReduceSupport_v6_t* reduceSupport;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclCollNetIallreduce_v9_t* iallreduce;
  ncclCollNetIallgather_v9_t* iallgather;
  ncclCollNetIreducescatter_v9_t* ireducescatter;
  ncclCollNetIflush_v6_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeColl;
  ncclNetClose_v3_t* closeListen;
  ncclNetMakeVDevice_v12_t* makeVDevice;
  ncclNetFinalize_v11_t* finalize;
} ncclCollNet_v12_t;
static_assert(sizeof(ncclCollNet_v12_t) == 152, "collective table v12");
static_assert(offsetof(ncclCollNet_v12_t, iallreduce) == 80, "collective table v12");
static_assert(offsetof(ncclCollNet_v12_t, iflush) == 104, "collective table v12");
static_assert(offsetof(ncclCollNet_v12_t, finalize) == 144, "collective table v12");

#ifdef __cplusplus
}  // extern "C"
#endif
// NOLINTEND
