/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's side of the plugin, in C, so that the host has no C++ in it: loads the library the way
 * NCCL does and calls any table through one set of functions.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin/abi/nccl_abi.h"

enum { kOldest = 3, kNewest = 12, kFirstWithContext = 11, kFirstNonBlocking = 5 };
enum { kMaxGroup = 8, kFirstWithTags = 5, kFirstWithDmaBuf = 6 };
enum { kFirstWithMerging = 9, kFirstWithRails = 12 };

typedef struct {
  int version;
  const void* table;
  void* ctx; /* v11 and later */
} Net;

typedef struct {
  char name[64];
  int max_recvs;
  int ptr_support;
  int speed;
  int ndevs; /* In vProps; 1 where the version has none. */
  int devs[2];
  int rail; /* Undefined where the version has none. */
} Properties;

/* NCCL's profiler as tables from v10 on get it: the callback by init, the handle with each message.
 * NULL: none. */
typedef struct {
  ncclProfilerCallback_t callback;
  void* handle;
} Profiler;
extern Profiler g_profiler;

/* dlopen(RTLD_NOW | RTLD_LOCAL); ends the test on failure. */
void* load_plugin(const char* path);
/* The table of one version; ends the test if it is missing. */
Net open_table(void* library, int version);

ncclResult_t net_init(Net* net);
ncclResult_t net_finalize(Net* net); /* Success where the version has none. */
ncclResult_t net_devices(const Net* net, int* ndev);
ncclResult_t net_properties(const Net* net, int dev, Properties* out);
/* Ends the test before v9. */
ncclResult_t net_make_vdevice(const Net* net, int n, const int* devs, int* made);
ncclResult_t net_listen(const Net* net, int dev, void* handle, void** comm);
ncclResult_t net_connect(const Net* net, int dev, void* handle, void** comm);
ncclResult_t net_accept(const Net* net, void* listen_comm, void** comm);
ncclResult_t net_reg_mr(const Net* net, void* comm, void* data, size_t size, int type, void** mh);
ncclResult_t net_dereg_mr(const Net* net, void* comm, void* mh);
/* Ends the test before v6. */
ncclResult_t net_reg_dma_buf(const Net* net, void* comm, void* data, size_t size, int type,
                             uint64_t offset, int fd, void** mh);
ncclResult_t net_isend(const Net* net, void* comm, void* data, size_t size, void* mh, void** req);
/* Tables before v5 have no tags. */
ncclResult_t net_isend_tagged(const Net* net, void* comm, void* data, size_t size, int tag,
                              void* mh, void** req);
/* `n` is passed on where the version has it; the buffer is repeated. */
ncclResult_t net_irecv(const Net* net, void* comm, int n, void* data, size_t size, void* mh,
                       void** req);
/* With 1 to kMaxGroup buffers; with one before v5. */
ncclResult_t net_irecv_group(const Net* net, void* comm, int n, void** data, const size_t* sizes,
                             int* tags, void** mhs, void** req);
/* Waits where the version blocks; otherwise *req is the plugin's. */
ncclResult_t net_flush(const Net* net, void* comm, void* data, size_t size, void* mh, void** req);
ncclResult_t net_flush_group(const Net* net, void* comm, int n, void** data, const size_t* sizes,
                             void** mhs, void** req);
ncclResult_t net_test(const Net* net, void* req, int* done, int* sizes);
ncclResult_t net_close_send(const Net* net, void* comm);
ncclResult_t net_close_recv(const Net* net, void* comm);
ncclResult_t net_close_listen(const Net* net, void* comm);

/* Polls until there is a comm; ends the test after a generous time. */
void* connect_until_done(const Net* net, int dev, void* handle);
void* accept_until_done(const Net* net, void* listen_comm);
/* Polls until done; *size gets the size from test(). */
void wait_for(const Net* net, void* req, int* size);

/* The plugin's log lines, through the logger that net_init() passes. */
extern char g_log[1 << 16];
int log_has(const char* text);

#define REQUIRE(condition, ...)                                                \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                            \
      fprintf(stderr, "\n--- the plugin said ---\n%s", g_log);                 \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)
#define REQUIRE_OK(call) REQUIRE((call) == ncclSuccess, "not ncclSuccess")
