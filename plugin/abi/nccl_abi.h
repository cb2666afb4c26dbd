/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's network-plugin interface, versions 3 to 12 (NCCL 2.6 to 2.30), in our own declarations.
 * Names and layouts are NCCL's: pinned below by size and offset, and compared with real NCCL
 * headers by tests/unit/plugin/nccl_headers_check.cc when -Dnccl_headers=PATH is given.
 *
 * Each signature stands once, named after the first version that has it (ncclNetIsend_v5_t serves
 * v5 to v8), so a table shows the differences from earlier ones. Valid C11 and
 * C++20, because the test hosts that load the plugin are C. Constants are enumerators, not macros:
 * the comparison includes NCCL's header after this one.
 */
// NOLINTBEGIN: NCCL's names, C's ways.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Values ----------------------------------------------------------------------------------- */

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
} ncclResult_t;

enum {
  NCCL_PTR_HOST = 0x1,
  NCCL_PTR_CUDA = 0x2,
  NCCL_PTR_DMABUF = 0x4,
};

enum {
  NCCL_NET_HANDLE_MAXSIZE = 128,
  NCCL_NET_HANDLE_MAXSIZE_V4 = 64, /* v3 and v4 */
  NCCL_NET_MAX_REQUESTS = 32,      /* Per comm; 8 before NCCL 2.19, 16 in v3's header. */
  NCCL_NET_MAX_DEVS_PER_NIC_V9 = 4,
  NCCL_NET_MAX_DEVS_PER_NIC_V12 = 8,
  NCCL_NET_OPTIONAL_RECV_COMPLETION = 0x1, /* What *request may hold on entry of irecv. */
  NCCL_NET_TRAFFIC_CLASS_UNDEF = -1,
  NCCL_NET_ID_UNDEF = -1,
};

typedef enum {
  NCCL_NET_DEVICE_HOST = 0,
  NCCL_NET_DEVICE_UNPACK = 1,
  NCCL_NET_DEVICE_GIN_PROXY = 2,
  NCCL_NET_DEVICE_GIN_GDAKI = 3,
} ncclNetDeviceType;

enum { NCCL_NET_DEVICE_INVALID_VERSION = 0x0 };

/* --- Logger and profiler ---------------------------------------------------------------------- */

typedef enum {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5,
} ncclDebugLogLevel;

enum {
  NCCL_INIT = 0x1,
  NCCL_NET = 0x10,
};

typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char* file,
                                  int line, const char* fmt, ...);

typedef ncclResult_t (*ncclProfilerCallback_t)(void** eHandle, int type, void* pHandle,
                                               int64_t pluginId, void* extData);

/* --- Small structures ------------------------------------------------------------------------- */

typedef struct {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void* handle;
  size_t size;
  int needsProxyProgress;
} ncclNetDeviceHandle_v7_t; /* v7 to v12 */
static_assert(sizeof(ncclNetDeviceHandle_v7_t) == 32, "device handle v7");
static_assert(offsetof(ncclNetDeviceHandle_v7_t, handle) == 8, "device handle v7");
static_assert(offsetof(ncclNetDeviceHandle_v7_t, needsProxyProgress) == 24, "device handle v7");

typedef struct {
  int trafficClass;
} ncclNetCommConfig_v10_t; /* v10 to v12 */
static_assert(sizeof(ncclNetCommConfig_v10_t) == 4, "comm config v10");

typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V9];
} ncclNetVDeviceProps_v9_t; /* v9 to v11 */
static_assert(sizeof(ncclNetVDeviceProps_v9_t) == 20, "virtual device v9");

typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
} ncclNetVDeviceProps_v12_t;
static_assert(sizeof(ncclNetVDeviceProps_v12_t) == 36, "virtual device v12");

typedef struct {
  int32_t maxConcurrentPeers;
  int32_t minConcurrentPeers;
  int32_t maxFlowsPerPeer;
  int32_t minFlowsPerPeer;
} ncclNetCommAttr_v11_t; /* v11 and v12 */

typedef struct {
  ncclNetCommAttr_v11_t sendCommAttr;
  ncclNetCommAttr_v11_t recvCommAttr;
  uint32_t op;
  uint32_t algo;
  uint32_t proto;
} ncclNetAttr_v11_t; /* v11 and v12 */
static_assert(sizeof(ncclNetAttr_v11_t) == 44, "net attributes v11");

/* --- Device properties ------------------------------------------------------------------------ */

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int speed; /* Mbit/s */
  int port;
  int maxComms;
} ncclNetProperties_v3_t; /* v3 and v4 */
static_assert(sizeof(ncclNetProperties_v3_t) == 40, "properties v3");
static_assert(offsetof(ncclNetProperties_v3_t, guid) == 16, "properties v3");
static_assert(offsetof(ncclNetProperties_v3_t, ptrSupport) == 24, "properties v3");
static_assert(offsetof(ncclNetProperties_v3_t, maxComms) == 36, "properties v3");

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency; /* microseconds */
  int maxComms;
  int maxRecvs;
} ncclNetProperties_v5_t; /* v5 and v6 */
static_assert(sizeof(ncclNetProperties_v5_t) == 48, "properties v5");
static_assert(offsetof(ncclNetProperties_v5_t, latency) == 36, "properties v5");
static_assert(offsetof(ncclNetProperties_v5_t, maxRecvs) == 44, "properties v5");

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v7_t;
static_assert(sizeof(ncclNetProperties_v7_t) == 56, "properties v7");
static_assert(offsetof(ncclNetProperties_v7_t, netDeviceType) == 48, "properties v7");

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v8_t;
static_assert(sizeof(ncclNetProperties_v8_t) == 64, "properties v8");
static_assert(offsetof(ncclNetProperties_v8_t, regIsGlobal) == 28, "properties v8");
static_assert(offsetof(ncclNetProperties_v8_t, latency) == 40, "properties v8");
static_assert(offsetof(ncclNetProperties_v8_t, netDeviceVersion) == 56, "properties v8");

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v9_t vProps;
  size_t maxP2pBytes;
  size_t maxCollBytes;
} ncclNetProperties_v9_t; /* v9 and v10 */
static_assert(sizeof(ncclNetProperties_v9_t) == 104, "properties v9");
static_assert(offsetof(ncclNetProperties_v9_t, forceFlush) == 32, "properties v9");
static_assert(offsetof(ncclNetProperties_v9_t, vProps) == 64, "properties v9");
static_assert(offsetof(ncclNetProperties_v9_t, maxP2pBytes) == 88, "properties v9");
static_assert(offsetof(ncclNetProperties_v9_t, maxCollBytes) == 96, "properties v9");

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v9_t vProps;
  size_t maxP2pBytes;
  size_t maxCollBytes;
  int maxMultiRequestSize;
} ncclNetProperties_v11_t;
static_assert(sizeof(ncclNetProperties_v11_t) == 112, "properties v11");
static_assert(offsetof(ncclNetProperties_v11_t, maxMultiRequestSize) == 104, "properties v11");

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v12_t vProps;
  size_t maxP2pBytes;
  size_t maxCollBytes;
  int maxMultiRequestSize;
  int16_t railId;
  int16_t planeId;
} ncclNetProperties_v12_t;
static_assert(sizeof(ncclNetProperties_v12_t) == 128, "properties v12");
static_assert(offsetof(ncclNetProperties_v12_t, maxP2pBytes) == 104, "properties v12");
static_assert(offsetof(ncclNetProperties_v12_t, maxMultiRequestSize) == 120, "properties v12");
static_assert(offsetof(ncclNetProperties_v12_t, railId) == 124, "properties v12");
static_assert(offsetof(ncclNetProperties_v12_t, planeId) == 126, "properties v12");

#ifdef __cplusplus
}  // extern "C"
#endif

#include "plugin/abi/nccl_tables.h"
// NOLINTEND
