/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's interface for events of a network plugin (NCCL 2.26 and later), in our own declarations:
 * the calls of the callback that init gets from v10 on, and the descriptors of an event. Names and
 * layouts are NCCL's (its net_socket_v1.h and net_ib_v1.h), pinned below by size and offset. Valid
 * C11 and C++20.
 */
// NOLINTBEGIN: NCCL's names, C's ways.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The callback's `type`. 2.26 has only the first two; it takes any other number than 0 as a stop.
 *   start: (&eHandle, 0, pHandle, pluginId, descriptor); pHandle is the one of isend or irecv
 *   stop:  (&eHandle, 1, NULL, 0, NULL) */
enum {
  ncclProfilerNetEventStart = 0,
  ncclProfilerNetEventStop = 1,
};

/* pluginId: the kind of the plugin, and the version of its descriptors. */
enum {
  NCCL_PROFILER_NET_TYPE_IB = 1 << 16,
  NCCL_PROFILER_NET_TYPE_SOCK = 2 << 16,
  NCCL_PROFILER_NET_IB_VER = 1,
  NCCL_PROFILER_NET_SOCKET_VER = 1,
};

/* A descriptor's `type`. In NCCL the structure behind it is the only member of a union. */
enum {
  ncclProfileQp = 1 << 0,
  ncclProfileSocket = 1 << 0,
};

/* `op` of a socket's event. */
enum {
  NCCL_SOCKET_SEND = 0,
  NCCL_SOCKET_RECV = 1,
};

typedef struct {
  uint8_t type;
  struct {
    int fd;
    int op;
    size_t length;
  } sock;
} ncclProfilerNetSockDescr_v1_t;
static_assert(sizeof(ncclProfilerNetSockDescr_v1_t) == 24, "socket event v1");
static_assert(offsetof(ncclProfilerNetSockDescr_v1_t, sock.fd) == 8, "socket event v1");
static_assert(offsetof(ncclProfilerNetSockDescr_v1_t, sock.op) == 12, "socket event v1");
static_assert(offsetof(ncclProfilerNetSockDescr_v1_t, sock.length) == 16, "socket event v1");

typedef struct {
  uint8_t type;
  struct {
    int device;
    uint64_t wr_id;
    int opcode;
    int qpNum;
    size_t length;
  } qp;
} ncclProfilerNetIbDescr_v1_t;
static_assert(sizeof(ncclProfilerNetIbDescr_v1_t) == 40, "InfiniBand event v1");
static_assert(offsetof(ncclProfilerNetIbDescr_v1_t, qp.device) == 8, "InfiniBand event v1");
static_assert(offsetof(ncclProfilerNetIbDescr_v1_t, qp.wr_id) == 16, "InfiniBand event v1");
static_assert(offsetof(ncclProfilerNetIbDescr_v1_t, qp.opcode) == 24, "InfiniBand event v1");
static_assert(offsetof(ncclProfilerNetIbDescr_v1_t, qp.qpNum) == 28, "InfiniBand event v1");
static_assert(offsetof(ncclProfilerNetIbDescr_v1_t, qp.length) == 32, "InfiniBand event v1");

/* A profiler handle from NCCL 2.27 on. In 2.27 `subArgs` is NULL where NCCL does not profile the
 * step, and its callback then reads through it. The handle of 2.26 is another structure. */
typedef struct {
  void* stepEvent;
  void* subArgs;
} ncclProfilerStepHandle_v2_27_t;
static_assert(sizeof(ncclProfilerStepHandle_v2_27_t) == 16, "step handle");
static_assert(offsetof(ncclProfilerStepHandle_v2_27_t, subArgs) == 8, "step handle");

#ifdef __cplusplus
}  // extern "C"
#endif
// NOLINTEND
