/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors */
#include "tests/abi/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

char g_log[1 << 16];
Profiler g_profiler;
static size_t g_log_used;
static pthread_mutex_t g_log_mutex = PTHREAD_MUTEX_INITIALIZER;

enum { kTimeoutSeconds = 60, kTag = 17 };

static void log_line(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                     const char* fmt, ...) {
  (void)flags;
  (void)file;
  (void)line;
  pthread_mutex_lock(&g_log_mutex);
  if (g_log_used + 2048 > sizeof g_log) g_log_used = 0; /* Old lines go; tests look at new ones. */
  char* to = g_log + g_log_used;
  int n = snprintf(to, 16, "%s ", level == NCCL_LOG_WARN ? "WARN" : "INFO");
  va_list args;
  va_start(args, fmt);
  n += vsnprintf(to + n, 2000, fmt, args);
  va_end(args);
  if (n > 2016) n = 2016;
  to[n++] = '\n';
  to[n] = '\0';
  g_log_used += (size_t)n;
  pthread_mutex_unlock(&g_log_mutex);
}

int log_has(const char* text) {
  pthread_mutex_lock(&g_log_mutex);
  const int found = strstr(g_log, text) != NULL;
  pthread_mutex_unlock(&g_log_mutex);
  return found;
}

void* load_plugin(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != NULL, "%s", dlerror());
  return library;
}

Net open_table(void* library, int version) {
  char symbol[32];
  snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", version);
  Net net = {version, dlsym(library, symbol), NULL};
  REQUIRE(net.table != NULL, "no %s", symbol);
  return net;
}

#define T(v) ((const ncclNet_v##v##_t*)net->table)
#define BAD_VERSION REQUIRE(0, "version %d", net->version)
/* One case of a switch over net->version. */
#define IS(v, call) \
  case v:           \
    return T(v)->call;
/* Members with one signature in every version. */
#define ON_EVERY_TABLE(call)                                       \
  switch (net->version) {                                          \
    IS(3, call)                                                    \
    IS(4, call)                                                    \
    IS(5, call)                                                    \
    IS(6, call)                                                    \
    IS(7, call)                                                    \
    IS(8, call) IS(9, call) IS(10, call) IS(11, call) IS(12, call) \
  }                                                                \
  BAD_VERSION;                                                     \
  return ncclInternalError

ncclResult_t net_init(Net* net) {
  ncclNetCommConfig_v10_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
  switch (net->version) {
    IS(10, init(log_line, g_profiler.callback))
    IS(11, init(&net->ctx, 0x1234, &config, log_line, g_profiler.callback))
    IS(12, init(&net->ctx, 0x1234, &config, log_line, g_profiler.callback))
    IS(3, init(log_line))
    IS(4, init(log_line))
    IS(5, init(log_line))
    IS(6, init(log_line))
    IS(7, init(log_line))
    IS(8, init(log_line))
    IS(9, init(log_line))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_finalize(Net* net) {
  void* ctx = net->ctx;
  net->ctx = NULL;
  if (net->version == 11) return T(11)->finalize(ctx);
  if (net->version == 12) return T(12)->finalize(ctx);
  return ncclSuccess;
}

ncclResult_t net_devices(const Net* net, int* ndev) { ON_EVERY_TABLE(devices(ndev)); }

/* The structure contains garbage beforehand, as NCCL's does. */
ncclResult_t net_properties(const Net* net, int dev, Properties* out) {
#define ASK(v, props_v, more)                                 \
  case v: {                                                   \
    ncclNetProperties_v##props_v##_t p;                       \
    memset(&p, 0xa5, sizeof p);                               \
    const ncclResult_t result = T(v)->getProperties(dev, &p); \
    if (result != ncclSuccess) return result;                 \
    snprintf(out->name, sizeof out->name, "%s", p.name);      \
    out->ptr_support = p.ptrSupport;                          \
    out->speed = p.speed;                                     \
    more;                                                     \
    return result;                                            \
  }
#define RECEIVES out->max_recvs = p.maxRecvs
#define PARTS                      \
  RECEIVES;                        \
  out->ndevs = p.vProps.ndevs;     \
  out->devs[0] = p.vProps.devs[0]; \
  out->devs[1] = p.vProps.devs[1]
  out->max_recvs = out->ndevs = 1;
  out->devs[0] = dev;
  out->rail = NCCL_NET_ID_UNDEF;
  switch (net->version) {
    ASK(3, 3, )
    ASK(4, 3, )
    ASK(5, 5, RECEIVES)
    ASK(6, 5, RECEIVES)
    ASK(7, 7, RECEIVES)
    ASK(8, 8, RECEIVES)
    ASK(9, 9, PARTS)
    ASK(10, 9, PARTS)
    ASK(11, 11, PARTS)
    ASK(12, 12, PARTS; out->rail = p.railId)
  }
#undef PARTS
#undef RECEIVES
#undef ASK
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_make_vdevice(const Net* net, int n, const int* devs, int* made) {
  ncclNetVDeviceProps_v9_t few = {.ndevs = n};
  ncclNetVDeviceProps_v12_t many = {.ndevs = n};
  for (int i = 0; i < n; ++i) few.devs[i] = many.devs[i] = devs[i];
  switch (net->version) {
    IS(9, makeVDevice(made, &few))
    IS(10, makeVDevice(made, &few))
    IS(11, makeVDevice(made, &few))
    IS(12, makeVDevice(made, &many))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_listen(const Net* net, int dev, void* handle, void** comm) {
  switch (net->version) {
    IS(3, listen(dev, handle, comm))
    IS(4, listen(dev, handle, comm))
    IS(5, listen(dev, handle, comm))
    IS(6, listen(dev, handle, comm))
    IS(7, listen(dev, handle, comm))
    IS(8, listen(dev, handle, comm))
    IS(9, listen(dev, handle, comm))
    IS(10, listen(dev, handle, comm))
    IS(11, listen(net->ctx, dev, handle, comm))
    IS(12, listen(net->ctx, dev, handle, comm))
  }
  BAD_VERSION;
  return ncclInternalError;
}

/* One-NIC hosts pass a NULL device handle pointer. */
ncclResult_t net_connect(const Net* net, int dev, void* handle, void** comm) {
  ncclNetCommConfig_v10_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
  ncclNetDeviceHandle_v7_t* device = NULL;
  switch (net->version) {
    IS(3, connect(dev, handle, comm))
    IS(4, connect(dev, handle, comm))
    IS(5, connect(dev, handle, comm))
    IS(6, connect(dev, handle, comm))
    IS(7, connect(dev, handle, comm, NULL))
    IS(8, connect(dev, handle, comm, &device))
    IS(9, connect(dev, handle, comm, &device))
    IS(10, connect(dev, &config, handle, comm, NULL))
    IS(11, connect(net->ctx, dev, handle, comm, &device))
    IS(12, connect(net->ctx, dev, handle, comm, NULL))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_accept(const Net* net, void* listen_comm, void** comm) {
  ncclNetDeviceHandle_v7_t* device = NULL;
  switch (net->version) {
    IS(3, accept(listen_comm, comm))
    IS(4, accept(listen_comm, comm))
    IS(5, accept(listen_comm, comm))
    IS(6, accept(listen_comm, comm))
    IS(7, accept(listen_comm, comm, NULL))
    IS(8, accept(listen_comm, comm, &device))
    IS(9, accept(listen_comm, comm, &device))
    IS(10, accept(listen_comm, comm, NULL))
    IS(11, accept(listen_comm, comm, &device))
    IS(12, accept(listen_comm, comm, NULL))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_reg_mr(const Net* net, void* comm, void* data, size_t size, int type, void** mh) {
  switch (net->version) {
    IS(3, regMr(comm, data, (int)size, type, mh))
    IS(4, regMr(comm, data, (int)size, type, mh))
    IS(5, regMr(comm, data, (int)size, type, mh))
    IS(6, regMr(comm, data, (int)size, type, mh))
    IS(7, regMr(comm, data, (int)size, type, mh))
    IS(8, regMr(comm, data, size, type, mh))
    IS(9, regMr(comm, data, size, type, mh))
    IS(10, regMr(comm, data, size, type, mh))
    IS(11, regMr(comm, data, size, type, mh))
    IS(12, regMr(comm, data, size, type, mh))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_dereg_mr(const Net* net, void* comm, void* mh) {
  ON_EVERY_TABLE(deregMr(comm, mh));
}

ncclResult_t net_reg_dma_buf(const Net* net, void* comm, void* data, size_t size, int type,
                             uint64_t offset, int fd, void** mh) {
  switch (net->version) {
    IS(6, regMrDmaBuf(comm, data, size, type, offset, fd, mh))
    IS(7, regMrDmaBuf(comm, data, size, type, offset, fd, mh))
    IS(8, regMrDmaBuf(comm, data, size, type, offset, fd, mh))
    IS(9, regMrDmaBuf(comm, data, size, type, offset, fd, mh))
    IS(10, regMrDmaBuf(comm, data, size, type, offset, fd, mh))
    IS(11, regMrDmaBuf(comm, data, size, type, offset, fd, mh))
    IS(12, regMrDmaBuf(comm, data, size, type, offset, fd, mh))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_isend_tagged(const Net* net, void* comm, void* data, size_t size, int tag,
                              void* mh, void** req) {
  switch (net->version) {
    IS(3, isend(comm, data, (int)size, mh, req))
    IS(4, isend(comm, data, (int)size, mh, req))
    IS(5, isend(comm, data, (int)size, tag, mh, req))
    IS(6, isend(comm, data, (int)size, tag, mh, req))
    IS(7, isend(comm, data, (int)size, tag, mh, req))
    IS(8, isend(comm, data, (int)size, tag, mh, req))
    IS(9, isend(comm, data, size, tag, mh, req))
    IS(10, isend(comm, data, size, tag, mh, g_profiler.handle, req))
    IS(11, isend(comm, data, size, tag, mh, g_profiler.handle, req))
    IS(12, isend(comm, data, size, tag, mh, g_profiler.handle, req))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_isend(const Net* net, void* comm, void* data, size_t size, void* mh, void** req) {
  return net_isend_tagged(net, comm, data, size, kTag, mh, req);
}

/* Sizes that NCCL has as int up to v8. */
static void narrow(int n, const size_t* sizes, int* narrowed) {
  REQUIRE(n >= 1 && n <= kMaxGroup, "a group of %d", n);
  for (int i = 0; i < n; ++i) narrowed[i] = (int)sizes[i];
}

ncclResult_t net_irecv_group(const Net* net, void* comm, int n, void** data, const size_t* sizes,
                             int* tags, void** mhs, void** req) {
  void* phandles[kMaxGroup];
  for (int i = 0; i < kMaxGroup; ++i) phandles[i] = g_profiler.handle;
  int ints[kMaxGroup];
  size_t wide[kMaxGroup];
  narrow(n, sizes, ints);
  memcpy(wide, sizes, (size_t)n * sizeof *sizes);
  REQUIRE(n == 1 || net->version >= kFirstWithTags, "v%d has no groups", net->version);
  switch (net->version) {
    IS(3, irecv(comm, data[0], ints[0], mhs[0], req))
    IS(4, irecv(comm, data[0], ints[0], mhs[0], req))
    IS(5, irecv(comm, n, data, ints, tags, mhs, req))
    IS(6, irecv(comm, n, data, ints, tags, mhs, req))
    IS(7, irecv(comm, n, data, ints, tags, mhs, req))
    IS(8, irecv(comm, n, data, ints, tags, mhs, req))
    IS(9, irecv(comm, n, data, wide, tags, mhs, req))
    IS(10, irecv(comm, n, data, wide, tags, mhs, g_profiler.handle == NULL ? NULL : phandles, req))
    IS(11, irecv(comm, n, data, wide, tags, mhs, phandles, req))
    IS(12, irecv(comm, n, data, wide, tags, mhs, g_profiler.handle == NULL ? NULL : phandles, req))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_irecv(const Net* net, void* comm, int n, void* data, size_t size, void* mh,
                       void** req) {
  void* datas[kMaxGroup];
  void* mhs[kMaxGroup];
  size_t sizes[kMaxGroup];
  int tags[kMaxGroup];
  for (int i = 0; i < kMaxGroup; ++i) {
    datas[i] = data;
    mhs[i] = mh;
    sizes[i] = size;
    tags[i] = kTag;
  }
  return net_irecv_group(net, comm, n, datas, sizes, tags, mhs, req);
}

ncclResult_t net_flush_group(const Net* net, void* comm, int n, void** data, const size_t* sizes,
                             void** mhs, void** req) {
  int ints[kMaxGroup];
  narrow(n, sizes, ints);
  REQUIRE(n == 1 || net->version >= kFirstWithTags, "v%d has no groups", net->version);
  *req = NULL;
  switch (net->version) {
    IS(3, flush(comm, data[0], ints[0], mhs[0]))
    IS(4, iflush(comm, data[0], ints[0], mhs[0], req))
    IS(5, iflush(comm, n, data, ints, mhs, req))
    IS(6, iflush(comm, n, data, ints, mhs, req))
    IS(7, iflush(comm, n, data, ints, mhs, req))
    IS(8, iflush(comm, n, data, ints, mhs, req))
    IS(9, iflush(comm, n, data, ints, mhs, req))
    IS(10, iflush(comm, n, data, ints, mhs, req))
    IS(11, iflush(comm, n, data, ints, mhs, req))
    IS(12, iflush(comm, n, data, ints, mhs, req))
  }
  BAD_VERSION;
  return ncclInternalError;
}

ncclResult_t net_flush(const Net* net, void* comm, void* data, size_t size, void* mh, void** req) {
  return net_flush_group(net, comm, 1, &data, &size, &mh, req);
}

ncclResult_t net_test(const Net* net, void* req, int* done, int* sizes) {
  ON_EVERY_TABLE(test(req, done, sizes));
}

ncclResult_t net_close_send(const Net* net, void* comm) { ON_EVERY_TABLE(closeSend(comm)); }

ncclResult_t net_close_recv(const Net* net, void* comm) { ON_EVERY_TABLE(closeRecv(comm)); }

ncclResult_t net_close_listen(const Net* net, void* comm) { ON_EVERY_TABLE(closeListen(comm)); }

static time_t now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void* connect_until_done(const Net* net, int dev, void* handle) {
  const time_t deadline = now_seconds() + kTimeoutSeconds;
  for (;;) {
    void* comm = NULL;
    REQUIRE_OK(net_connect(net, dev, handle, &comm));
    if (comm != NULL) return comm;
    REQUIRE(net->version >= kFirstNonBlocking, "v%d must block", net->version);
    REQUIRE(now_seconds() < deadline, "connect does not end");
    sched_yield();
  }
}

void* accept_until_done(const Net* net, void* listen_comm) {
  const time_t deadline = now_seconds() + kTimeoutSeconds;
  for (;;) {
    void* comm = NULL;
    REQUIRE_OK(net_accept(net, listen_comm, &comm));
    if (comm != NULL) return comm;
    REQUIRE(net->version >= kFirstNonBlocking, "v%d must block", net->version);
    REQUIRE(now_seconds() < deadline, "accept does not end");
    sched_yield();
  }
}

void wait_for(const Net* net, void* req, int* size) {
  const time_t deadline = now_seconds() + kTimeoutSeconds;
  for (;;) {
    int done = 0x5a5a5a5a; /* NCCL's variable is uninitialised. */
    REQUIRE_OK(net_test(net, req, &done, size));
    REQUIRE(done == 0 || done == 1, "done is %d", done);
    if (done) return;
    REQUIRE(now_seconds() < deadline, "a request does not end");
    sched_yield();
  }
}
