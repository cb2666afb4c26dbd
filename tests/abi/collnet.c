/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * CollNet's iallgather and ireducescatter of one table version, called as NCCL's proxy threads call
 * them: windows of the parts of all ranks, in host memory, and arguments that no NCCL gives.
 *
 *   collnet PLUGIN VERSION
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "plugin/abi/nccl_collnet.h"
#include "tests/abi/driver.h"

enum { kRanks = 2, kPart = 30000, kWindow = 16000, kAll = kRanks * kPart };
enum { kHandleBytes = 128 };

typedef void (*Function)(void);
/* Those that differ between versions have no type here. */
typedef struct {
  int version;
  Function init, listen, reg_mr, gather, scatter;
  ncclNetDevices_v3_t* devices;
  ncclCollNetConnect_v6_t* connect;
  ncclNetDeregMr_v3_t* dereg_mr;
  ncclNetTest_v3_t* test;
  ncclNetClose_v3_t *close, *close_listen;
  ncclNetFinalize_v11_t* finalize;
} Coll;

typedef struct {
  int rank;
  void* ctx;
  char handle[kHandleBytes];
  void* listener;
  void* comm;
  int32_t from[kAll];
  int32_t to[kAll];
  void* from_mr;
  void* to_mr;
} Rank;

static Coll g_coll;
static Rank g_ranks[kRanks];

#define TAKE(v)                                                      \
  {                                                                  \
    const ncclCollNet_v##v##_t* t = table;                           \
    REQUIRE(t->iallgather && t->ireducescatter, "a member is NULL"); \
    g_coll.init = (Function)t->init;                                 \
    g_coll.listen = (Function)t->listen;                             \
    g_coll.reg_mr = (Function)t->regMr;                              \
    g_coll.gather = (Function)t->iallgather;                         \
    g_coll.scatter = (Function)t->ireducescatter;                    \
    g_coll.devices = t->devices;                                     \
    g_coll.connect = t->connect;                                     \
    g_coll.dereg_mr = t->deregMr;                                    \
    g_coll.test = t->test;                                           \
    g_coll.close = t->closeColl;                                     \
    g_coll.close_listen = t->closeListen;                            \
  }

static void open_collnet(void* library, int version) {
  char symbol[32];
  snprintf(symbol, sizeof symbol, "ncclCollNetPlugin_v%d", version);
  const void* table = dlsym(library, symbol);
  REQUIRE(table != NULL, "no %s", symbol);
  g_coll.version = version;
  switch (version) {
    case 8:
      TAKE(8) break;
    case 9:
      TAKE(9) break;
    case 10:
      TAKE(10) break;
    case 11:
      TAKE(11)
      g_coll.finalize = ((const ncclCollNet_v11_t*)table)->finalize;
      break;
    default:
      TAKE(12)
      g_coll.finalize = ((const ncclCollNet_v12_t*)table)->finalize;
  }
}

static void listen_as(Rank* rank) {
  if (g_coll.version >= kFirstWithContext) {
    REQUIRE_OK(((ncclCollNetInit_v11_t*)g_coll.init)(&rank->ctx, 7, NULL));
    REQUIRE(rank->ctx != NULL, "CollNet is off");
    REQUIRE_OK(((ncclNetListen_v11_t*)g_coll.listen)(rank->ctx, 0, rank->handle, &rank->listener));
  } else {
    REQUIRE_OK(((ncclCollNetInit_v6_t*)g_coll.init)(NULL));
    REQUIRE_OK(((ncclNetListen_v3_t*)g_coll.listen)(0, rank->handle, &rank->listener));
  }
}

static void* register_memory(Rank* rank, void* data, size_t size) {
  void* mr = NULL;
  REQUIRE_OK(((ncclNetRegMr_v8_t*)g_coll.reg_mr)(rank->comm, data, size, NCCL_PTR_HOST, &mr));
  return mr;
}

/* The first element of the rank's part that lies in the window. */
static size_t own_begin(const Rank* rank, size_t offset) {
  const size_t part = (size_t)rank->rank * kPart;
  return part > offset ? part : offset;
}

/* In elements; `pieces` as NCCL would give them. */
static ncclResult_t gather(Rank* rank, size_t offset, size_t count, int pieces, size_t part,
                           void** request) {
  const size_t size = sizeof(int32_t);
  void* own = rank->from + own_begin(rank, offset);
  if (g_coll.version == 8) {
    ncclNetSGE_v8_t piece = {rank->to_mr, rank->to + offset, (uint32_t)(count * size)};
    return ((ncclCollNetIallgather_v8_t*)g_coll.gather)(rank->comm, own, pieces, &piece,
                                                        part * size, offset * size, count * size,
                                                        rank->from_mr, request);
  }
  ncclNetSGE_v9_t piece = {rank->to_mr, rank->to + offset, count * size};
  return ((ncclCollNetIallgather_v9_t*)g_coll.gather)(rank->comm, own, pieces, &piece, part * size,
                                                      offset * size, count * size, rank->from_mr,
                                                      request);
}

static ncclResult_t scatter(Rank* rank, size_t offset, size_t count, ncclDataType_t type,
                            void* own_mr, void** request) {
  const size_t size = sizeof(int32_t);
  void* own = rank->to + own_begin(rank, offset);
  if (g_coll.version == 8) {
    ncclNetSGE_v8_t piece = {rank->from_mr, rank->from + offset, (uint32_t)(count * size)};
    return ((ncclCollNetIreducescatter_v8_t*)g_coll.scatter)(
        rank->comm, 1, &piece, own, kPart * size, offset * size, count * size, type, ncclSum,
        own_mr, request);
  }
  ncclNetSGE_v9_t piece = {rank->from_mr, rank->from + offset, count * size};
  return ((ncclCollNetIreducescatter_v9_t*)g_coll.scatter)(rank->comm, 1, &piece, own, kPart * size,
                                                           offset * size, count * size, type,
                                                           ncclSum, own_mr, request);
}

static void wait_for_all(void** requests, const size_t* counts, int n) {
  for (int i = 0; i < n; ++i) {
    int done = 0;
    int size = 0;
    while (!done) REQUIRE_OK(g_coll.test(requests[i], &done, &size));
    REQUIRE((size_t)size == counts[i] * sizeof(int32_t), "%d bytes of %zu elements", size,
            counts[i]);
  }
}

/* All windows are in flight at once, and all of both kinds behind each other. */
static void run_windows(Rank* rank) {
  void* requests[2 * (kAll / kWindow + 1)];
  size_t counts[2 * (kAll / kWindow + 1)];
  int n = 0;
  for (size_t offset = 0; offset < kAll; offset += kWindow, ++n) {
    counts[n] = offset + kWindow < kAll ? kWindow : kAll - offset;
    REQUIRE_OK(gather(rank, offset, counts[n], 1, kPart, &requests[n]));
    REQUIRE(requests[n] != NULL, "no request");
  }
  wait_for_all(requests, counts, n);
  for (int32_t i = 0; i < kAll; ++i)
    REQUIRE(rank->to[i] == i * (i / kPart + 1), "gathered element %d is %d", i, rank->to[i]);
  n = 0;
  for (size_t offset = 0; offset < kAll; offset += kWindow, ++n) {
    counts[n] = offset + kWindow < kAll ? kWindow : kAll - offset;
    REQUIRE_OK(scatter(rank, offset, counts[n], ncclInt32, rank->to_mr, &requests[n]));
    REQUIRE(requests[n] != NULL, "no request");
  }
  wait_for_all(requests, counts, n);
  for (int32_t i = rank->rank * kPart; i < (rank->rank + 1) * kPart; ++i)
    REQUIRE(rank->to[i] == 3 * i, "reduced element %d is %d", i, rank->to[i]);
}

static void* run_rank(void* argument) {
  Rank* rank = argument;
  void* handles[kRanks];
  for (int i = 0; i < kRanks; ++i) handles[i] = g_ranks[i].handle;
  REQUIRE_OK(g_coll.connect(handles, kRanks, rank->rank, rank->listener, &rank->comm));
  REQUIRE(rank->comm != NULL, "no group");
  REQUIRE_OK(g_coll.close_listen(rank->listener));
  for (int32_t i = 0; i < kAll; ++i) rank->from[i] = i * (rank->rank + 1);
  rank->from_mr = register_memory(rank, rank->from, sizeof rank->from);
  rank->to_mr = register_memory(rank, rank->to, sizeof rank->to);
  run_windows(rank);
  return NULL;
}

static void refuse_wrong_arguments(Rank* rank) {
  void* request = &request;
  REQUIRE(gather(rank, 0, 10, 2, kPart, &request) != ncclSuccess, "two pieces were taken");
  REQUIRE(request == NULL && log_has("iallgather with 2 pieces of memory"), "no reason");
  REQUIRE(gather(rank, 0, 10, 0, kPart, &request) != ncclSuccess, "no piece was taken");
  REQUIRE(gather(rank, 0, 10, 1, 0, &request) != ncclSuccess, "parts of no byte were taken");
  REQUIRE(gather(rank, 10, kAll, 1, kPart, &request) != ncclSuccess, "a window outside was taken");
  REQUIRE(scatter(rank, 0, 10, (ncclDataType_t)10, rank->to_mr, &request) != ncclSuccess,
          "an unknown type was taken");
  REQUIRE(log_has("ireducescatter of data type 10 by operation 0"), "no reason");
  REQUIRE(scatter(rank, 0, 10, ncclInt32, NULL, &request) != ncclSuccess, "no mhandle was taken");
  REQUIRE(log_has("are not in the memory that was registered with their mhandle"), "no reason");
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3, "usage: collnet PLUGIN VERSION");
  setenv("ZTCP_COLLNET", "1", 1);
  const int version = atoi(argv[2]);
  void* library = load_plugin(argv[1]);
  open_collnet(library, version);
  Net net = open_table(library, version);
  REQUIRE_OK(net_init(&net));
  for (int i = 0; i < kRanks; ++i) {
    g_ranks[i].rank = i;
    listen_as(&g_ranks[i]);
  }
  int devices = 0;
  REQUIRE_OK(g_coll.devices(&devices));
  REQUIRE(devices > 0, "no device");

  pthread_t threads[kRanks];
  for (int i = 0; i < kRanks; ++i)
    REQUIRE(pthread_create(&threads[i], NULL, run_rank, &g_ranks[i]) == 0, "no thread");
  for (int i = 0; i < kRanks; ++i) pthread_join(threads[i], NULL);
  refuse_wrong_arguments(&g_ranks[0]);

  for (int i = 0; i < kRanks; ++i) {
    REQUIRE_OK(g_coll.dereg_mr(g_ranks[i].comm, g_ranks[i].from_mr));
    REQUIRE_OK(g_coll.dereg_mr(g_ranks[i].comm, g_ranks[i].to_mr));
    REQUIRE_OK(g_coll.close(g_ranks[i].comm));
    if (g_coll.finalize != NULL) REQUIRE_OK(g_coll.finalize(g_ranks[i].ctx));
  }
  REQUIRE_OK(net_finalize(&net));
  return 0;
}
