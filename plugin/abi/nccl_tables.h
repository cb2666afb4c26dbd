/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * The tables themselves, ncclNet_v3_t to ncclNet_v12_t, and the signatures in them. Included only
 * by nccl_abi.h; see there.
 */
// NOLINTBEGIN: NCCL's names, C's ways.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* --- Signatures, each named after the first version that has it --------------------------------
 */

typedef ncclResult_t ncclNetInit_v3_t(ncclDebugLogger_t log);
typedef ncclResult_t ncclNetInit_v10_t(ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
typedef ncclResult_t ncclNetInit_v11_t(void** ctx, uint64_t commId, ncclNetCommConfig_v10_t* config,
                                       ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
typedef ncclResult_t ncclNetDevices_v3_t(int* ndev);
typedef ncclResult_t ncclNetGetProperties_v3_t(int dev, ncclNetProperties_v3_t* props);
typedef ncclResult_t ncclNetGetProperties_v5_t(int dev, ncclNetProperties_v5_t* props);
typedef ncclResult_t ncclNetGetProperties_v7_t(int dev, ncclNetProperties_v7_t* props);
typedef ncclResult_t ncclNetGetProperties_v8_t(int dev, ncclNetProperties_v8_t* props);
typedef ncclResult_t ncclNetGetProperties_v9_t(int dev, ncclNetProperties_v9_t* props);
typedef ncclResult_t ncclNetGetProperties_v11_t(int dev, ncclNetProperties_v11_t* props);
typedef ncclResult_t ncclNetGetProperties_v12_t(int dev, ncclNetProperties_v12_t* props);
typedef ncclResult_t ncclNetListen_v3_t(int dev, void* handle, void** listenComm);
typedef ncclResult_t ncclNetListen_v11_t(void* ctx, int dev, void* handle, void** listenComm);
/* v3 and v4 block until connected; from v5 on, success with a NULL comm means "call again". */
typedef ncclResult_t ncclNetConnect_v3_t(int dev, void* handle, void** sendComm);
typedef ncclResult_t ncclNetConnect_v7_t(int dev, void* handle, void** sendComm,
                                         ncclNetDeviceHandle_v7_t** sendDevComm);
typedef ncclResult_t ncclNetConnect_v10_t(int dev, ncclNetCommConfig_v10_t* config, void* handle,
                                          void** sendComm, ncclNetDeviceHandle_v7_t** sendDevComm);
typedef ncclResult_t ncclNetConnect_v11_t(void* ctx, int dev, void* handle, void** sendComm,
                                          ncclNetDeviceHandle_v7_t** sendDevComm);
typedef ncclResult_t ncclNetAccept_v3_t(void* listenComm, void** recvComm);
typedef ncclResult_t ncclNetAccept_v7_t(void* listenComm, void** recvComm,
                                        ncclNetDeviceHandle_v7_t** recvDevComm);
typedef ncclResult_t ncclNetRegMr_v3_t(void* comm, void* data, int size, int type, void** mhandle);
typedef ncclResult_t ncclNetRegMr_v8_t(void* comm, void* data, size_t size, int type,
                                       void** mhandle);
typedef ncclResult_t ncclNetRegMrDmaBuf_v6_t(void* comm, void* data, size_t size, int type,
                                             uint64_t offset, int fd, void** mhandle);
typedef ncclResult_t ncclNetDeregMr_v3_t(void* comm, void* mhandle);
typedef ncclResult_t ncclNetIsend_v3_t(void* sendComm, void* data, int size, void* mhandle,
                                       void** request);
typedef ncclResult_t ncclNetIsend_v5_t(void* sendComm, void* data, int size, int tag, void* mhandle,
                                       void** request);
typedef ncclResult_t ncclNetIsend_v9_t(void* sendComm, void* data, size_t size, int tag,
                                       void* mhandle, void** request);
typedef ncclResult_t ncclNetIsend_v10_t(void* sendComm, void* data, size_t size, int tag,
                                        void* mhandle, void* phandle, void** request);
typedef ncclResult_t ncclNetIrecv_v3_t(void* recvComm, void* data, int size, void* mhandle,
                                       void** request);
typedef ncclResult_t ncclNetIrecv_v5_t(void* recvComm, int n, void** data, int* sizes, int* tags,
                                       void** mhandles, void** request);
typedef ncclResult_t ncclNetIrecv_v9_t(void* recvComm, int n, void** data, size_t* sizes, int* tags,
                                       void** mhandles, void** request);
typedef ncclResult_t ncclNetIrecv_v10_t(void* recvComm, int n, void** data, size_t* sizes,
                                        int* tags, void** mhandles, void** phandles,
                                        void** request);
typedef ncclResult_t ncclNetFlush_v3_t(void* recvComm, void* data, int size, void* mhandle);
typedef ncclResult_t ncclNetIflush_v4_t(void* recvComm, void* data, int size, void* mhandle,
                                        void** request);
typedef ncclResult_t ncclNetIflush_v5_t(void* recvComm, int n, void** data, int* sizes,
                                        void** mhandles, void** request);
typedef ncclResult_t ncclNetTest_v3_t(void* request, int* done, int* sizes);
typedef ncclResult_t ncclNetClose_v3_t(void* comm); /* closeSend, closeRecv, closeListen */
typedef ncclResult_t ncclNetGetDeviceMr_v7_t(void* comm, void* mhandle, void** dptr_mhandle);
typedef ncclResult_t ncclNetIrecvConsumed_v7_t(void* recvComm, int n, void* request);
typedef ncclResult_t ncclNetMakeVDevice_v9_t(int* d, ncclNetVDeviceProps_v9_t* props);
typedef ncclResult_t ncclNetMakeVDevice_v12_t(int* d, ncclNetVDeviceProps_v12_t* props);
typedef ncclResult_t ncclNetFinalize_v11_t(void* ctx);
typedef ncclResult_t ncclNetSetNetAttr_v11_t(void* ctx, ncclNetAttr_v11_t* attr);

/* --- Tables ------------------------------------------------------------------------------------
 */

typedef struct {
  const char* name;
  ncclNetInit_v3_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v3_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v3_t* connect;
  ncclNetAccept_v3_t* accept;
  ncclNetRegMr_v3_t* regMr;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v3_t* isend;
  ncclNetIrecv_v3_t* irecv;
  ncclNetFlush_v3_t* flush; /* Blocks. */
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
} ncclNet_v3_t;
static_assert(sizeof(ncclNet_v3_t) == 128, "table v3");

typedef struct {
  const char* name;
  ncclNetInit_v3_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v3_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v3_t* connect;
  ncclNetAccept_v3_t* accept;
  ncclNetRegMr_v3_t* regMr;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v3_t* isend;
  ncclNetIrecv_v3_t* irecv;
  ncclNetIflush_v4_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
} ncclNet_v4_t;
static_assert(sizeof(ncclNet_v4_t) == 128, "table v4");

typedef struct {
  const char* name;
  ncclNetInit_v3_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v5_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v3_t* connect;
  ncclNetAccept_v3_t* accept;
  ncclNetRegMr_v3_t* regMr;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v5_t* isend;
  ncclNetIrecv_v5_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
} ncclNet_v5_t;
static_assert(sizeof(ncclNet_v5_t) == 128, "table v5");

typedef struct {
  const char* name;
  ncclNetInit_v3_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v5_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v3_t* connect;
  ncclNetAccept_v3_t* accept;
  ncclNetRegMr_v3_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v5_t* isend;
  ncclNetIrecv_v5_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
} ncclNet_v6_t;
static_assert(sizeof(ncclNet_v6_t) == 136, "table v6");

typedef struct {
  const char* name;
  ncclNetInit_v3_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v7_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v7_t* connect;
  ncclNetAccept_v7_t* accept;
  ncclNetRegMr_v3_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v5_t* isend;
  ncclNetIrecv_v5_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
  ncclNetGetDeviceMr_v7_t* getDeviceMr;
  ncclNetIrecvConsumed_v7_t* irecvConsumed;
} ncclNet_v7_t;
static_assert(sizeof(ncclNet_v7_t) == 152, "table v7");

typedef struct {
  const char* name;
  ncclNetInit_v3_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v8_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v7_t* connect;
  ncclNetAccept_v7_t* accept;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v5_t* isend;
  ncclNetIrecv_v5_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
  ncclNetGetDeviceMr_v7_t* getDeviceMr;
  ncclNetIrecvConsumed_v7_t* irecvConsumed;
} ncclNet_v8_t;
static_assert(sizeof(ncclNet_v8_t) == 152, "table v8");

typedef struct {
  const char* name;
  ncclNetInit_v3_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v9_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v7_t* connect;
  ncclNetAccept_v7_t* accept;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v9_t* isend;
  ncclNetIrecv_v9_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
  ncclNetGetDeviceMr_v7_t* getDeviceMr;
  ncclNetIrecvConsumed_v7_t* irecvConsumed;
  ncclNetMakeVDevice_v9_t* makeVDevice;
} ncclNet_v9_t;
static_assert(sizeof(ncclNet_v9_t) == 160, "table v9");

typedef struct {
  const char* name;
  ncclNetInit_v10_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v9_t* getProperties;
  ncclNetListen_v3_t* listen;
  ncclNetConnect_v10_t* connect;
  ncclNetAccept_v7_t* accept;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v10_t* isend;
  ncclNetIrecv_v10_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
  ncclNetGetDeviceMr_v7_t* getDeviceMr;
  ncclNetIrecvConsumed_v7_t* irecvConsumed;
  ncclNetMakeVDevice_v9_t* makeVDevice;
} ncclNet_v10_t;
static_assert(sizeof(ncclNet_v10_t) == 160, "table v10");

typedef struct {
  const char* name;
  ncclNetInit_v11_t* init; /* Once per communicator. */
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v11_t* getProperties;
  ncclNetListen_v11_t* listen;
  ncclNetConnect_v11_t* connect;
  ncclNetAccept_v7_t* accept;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v10_t* isend;
  ncclNetIrecv_v10_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
  ncclNetGetDeviceMr_v7_t* getDeviceMr;
  ncclNetIrecvConsumed_v7_t* irecvConsumed;
  ncclNetMakeVDevice_v9_t* makeVDevice;
  ncclNetFinalize_v11_t* finalize;
  ncclNetSetNetAttr_v11_t* setNetAttr;
} ncclNet_v11_t;
static_assert(sizeof(ncclNet_v11_t) == 176, "table v11");

typedef struct {
  const char* name;
  ncclNetInit_v11_t* init;
  ncclNetDevices_v3_t* devices;
  ncclNetGetProperties_v12_t* getProperties;
  ncclNetListen_v11_t* listen;
  ncclNetConnect_v11_t* connect;
  ncclNetAccept_v7_t* accept;
  ncclNetRegMr_v8_t* regMr;
  ncclNetRegMrDmaBuf_v6_t* regMrDmaBuf;
  ncclNetDeregMr_v3_t* deregMr;
  ncclNetIsend_v10_t* isend;
  ncclNetIrecv_v10_t* irecv;
  ncclNetIflush_v5_t* iflush;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t* closeSend;
  ncclNetClose_v3_t* closeRecv;
  ncclNetClose_v3_t* closeListen;
  ncclNetGetDeviceMr_v7_t* getDeviceMr;
  ncclNetIrecvConsumed_v7_t* irecvConsumed;
  ncclNetMakeVDevice_v12_t* makeVDevice;
  ncclNetFinalize_v11_t* finalize;
  ncclNetSetNetAttr_v11_t* setNetAttr;
} ncclNet_v12_t;
static_assert(sizeof(ncclNet_v12_t) == 176, "table v12");

#ifdef __cplusplus
}  // extern "C"
#endif
// NOLINTEND
