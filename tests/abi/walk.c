/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Walks every table from init to close, with a device connected to itself and every byte compared.
 *
 *   walk PLUGIN [VERSION]
 */
#include <pthread.h>
#include <string.h>

#include "tests/abi/driver.h"

enum { kBiggest = (4 << 20) + 3, kPending = 8, kMaxRequests = NCCL_NET_MAX_REQUESTS };

typedef struct {
  const Net* net;
  void* send;
  void* recv;
  unsigned char* from;
  unsigned char* to;
  void* from_mh;
  void* to_mh;
} Pair;

static void fill(unsigned char* bytes, size_t size, unsigned seed) {
  uint32_t x = seed * 2654435761u + 1;
  for (size_t i = 0; i < size; ++i) {
    x = x * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(x >> 24);
  }
}

static void* isend_until_taken(const Pair* pair, size_t offset, size_t size) {
  void* request = NULL;
  while (request == NULL)
    REQUIRE_OK(
        net_isend(pair->net, pair->send, pair->from + offset, size, pair->from_mh, &request));
  return request;
}

/* `hint` is NCCL's value of *request on entry: NULL, or 1 for LL and LL128. */
static void* irecv_until_taken(const Pair* pair, size_t offset, size_t size, intptr_t hint) {
  void* request;
  do {
    request = (void*)hint;
    REQUIRE_OK(net_irecv(pair->net, pair->recv, 1, pair->to + offset, size, pair->to_mh, &request));
    REQUIRE(request != (void*)(intptr_t)1, "the hint was returned as a request");
  } while (request == NULL);
  return request;
}

static void transfer(const Pair* pair, size_t size, size_t posted, unsigned seed) {
  fill(pair->from, size, seed);
  memset(pair->to, 0xee, posted + 64);
  void* receive = irecv_until_taken(pair, 0, posted, seed % 2);
  void* send = isend_until_taken(pair, 0, size);
  int sent[2] = {-7, -7};
  wait_for(pair->net, send, sent);
  REQUIRE(sent[0] == (int)size && sent[1] == -7, "test() of a send of %zu wrote {%d, %d}", size,
          sent[0], sent[1]);
  int received[2] = {-7, -7};
  wait_for(pair->net, receive, received);
  REQUIRE(received[0] == (int)size && received[1] == -7, "%zu bytes arrived as %d", size,
          received[0]);
  REQUIRE(memcmp(pair->from, pair->to, size) == 0, "bytes differ at size %zu", size);
  for (size_t i = size; i < posted + 64; ++i)
    REQUIRE(pair->to[i] == 0xee, "byte %zu behind a message of %zu was written", i, size);
}

/* Messages arrive in the order of posting, sent before or after their receives are posted. */
/* Whether a send is taken before its receive is posted; otherwise NCCL tries again. */
static int g_sends_ahead;

static void keep_order(const Pair* pair, int receives_first) {
  enum { kMessages = 24, kStride = 8192 };
  void* receives[kMessages];
  void* sends[kMessages];
  fill(pair->from, kMessages * kStride, 99);
  memset(pair->to, 0, kMessages * kStride);
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < kMessages; ++i) {
      const size_t size = (size_t)(i * 331 % kStride);
      if ((half == 0) == (receives_first != 0))
        receives[i] = irecv_until_taken(pair, (size_t)i * kStride, kStride, 0);
      else
        sends[i] = isend_until_taken(pair, (size_t)i * kStride, size);
    }
  for (int i = kMessages - 1; i >= 0; --i) {
    int size = -1;
    wait_for(pair->net, receives[i], &size);
    REQUIRE(size == i * 331 % kStride, "message %d has %d bytes", i, size);
    REQUIRE(memcmp(pair->from + i * kStride, pair->to + i * kStride, (size_t)size) == 0,
            "message %d differs", i);
    wait_for(pair->net, sends[i], NULL); /* sizes may be NULL. */
  }
}

/* Full windows of large messages, as the proxy posts them: receives ahead, several in flight. */
static void pipeline(const Pair* pair) {
  enum { kSteps = 64, kStep = 512 << 10 };
  void* receives[kPending] = {0};
  void* sends[kPending] = {0};
  fill(pair->from, kPending * kStep, 5);
  memset(pair->to, 0, kPending * kStep);
  for (int step = 0; step < kSteps + kPending; ++step) {
    const int slot = step % kPending;
    const size_t at = (size_t)slot * kStep;
    if (step >= kPending) {
      int size = -1;
      wait_for(pair->net, sends[slot], NULL);
      wait_for(pair->net, receives[slot], &size);
      REQUIRE(size == kStep, "step %d has %d bytes", step - kPending, size);
      REQUIRE(memcmp(pair->from + at, pair->to + at, kStep) == 0, "step %d differs", step);
      memset(pair->to + at, 0, 64);
    }
    if (step < kSteps) {
      receives[slot] = irecv_until_taken(pair, at, kStep, 0);
      sends[slot] = isend_until_taken(pair, at, kStep);
    }
  }
}

/* A device moves up to 2 GiB at once, and lengths in its records have 32 bits: a message larger
 * than the properties allow is refused at once. */
static void too_large(const Pair* pair) {
  void* request = pair->from;
  REQUIRE(net_isend(pair->net, pair->send, pair->from, ((size_t)1 << 30) + 1, pair->from_mh,
                    &request) == ncclInvalidArgument,
          "more than 1 GiB is taken");
  REQUIRE(request == NULL, "a refused message has a request");
}

/* Groups of all sizes; their messages come by tag, in another order than their buffers'. */
static void groups(const Pair* pair) {
  enum { kStride = 200000 };
  for (int n = 1; n <= kMaxGroup; ++n) {
    void* at[kMaxGroup];
    void* mhs[kMaxGroup];
    size_t posted[kMaxGroup];
    int tags[kMaxGroup];
    void* sends[kMaxGroup];
    fill(pair->from, (size_t)n * kStride, (unsigned)n);
    memset(pair->to, 0xee, (size_t)n * kStride);
    for (int i = 0; i < n; ++i) {
      at[i] = pair->to + (size_t)i * kStride;
      mhs[i] = pair->to_mh;
      posted[i] = kStride - 64;
      tags[i] = 1000 - 7 * i;
    }
    void* receive = NULL;
    while (receive == NULL)
      REQUIRE_OK(net_irecv_group(pair->net, pair->recv, n, at, posted, tags, mhs, &receive));
    for (int i = n - 1; i >= 0; --i) {
      sends[i] = NULL;
      while (sends[i] == NULL)
        REQUIRE_OK(net_isend_tagged(pair->net, pair->send, pair->from + (size_t)i * kStride,
                                    (size_t)(i * n * 3000), tags[i], pair->from_mh, &sends[i]));
    }
    int sizes[kMaxGroup + 1];
    memset(sizes, 0x77, sizeof sizes);
    wait_for(pair->net, receive, sizes);
    for (int i = 0; i < n; ++i) {
      REQUIRE(sizes[i] == i * n * 3000, "buffer %d of %d has %d bytes", i, n, sizes[i]);
      REQUIRE(memcmp(at[i], pair->from + (size_t)i * kStride, (size_t)sizes[i]) == 0,
              "buffer %d of %d differs", i, n);
      REQUIRE(((unsigned char*)at[i])[sizes[i]] == 0xee, "a byte behind message %d of %d", i, n);
      wait_for(pair->net, sends[i], NULL);
    }
    REQUIRE(sizes[n] == 0x77777777, "test() of %d buffers wrote one more size", n);
  }
}

/* At least NCCL_NET_MAX_REQUESTS are taken, then *request is NULL, not an error. */
static void fill_request_table(const Pair* pair) {
  void* requests[kMaxRequests];
  for (int i = 0; i < kMaxRequests; ++i) {
    requests[i] = NULL;
    REQUIRE_OK(
        net_irecv(pair->net, pair->recv, 1, pair->to + i * 64, 64, pair->to_mh, &requests[i]));
    REQUIRE(requests[i] != NULL, "request %d of %d was not taken", i, kMaxRequests);
  }
  void* one_more = (void*)(intptr_t)1;
  REQUIRE_OK(net_irecv(pair->net, pair->recv, 1, pair->to, 64, pair->to_mh, &one_more));
  REQUIRE(one_more == NULL, "request %d was taken", kMaxRequests + 1);
  for (int i = 0; i < kMaxRequests; ++i) {
    int size = -1;
    wait_for(pair->net, isend_until_taken(pair, 0, (size_t)i), NULL);
    wait_for(pair->net, requests[i], &size);
    REQUIRE(size == i, "request %d has %d bytes", i, size);
  }
}

typedef struct {
  const Pair* pair;
  volatile int stop;
  int rounds;
} Registrar;

static void* register_in_a_loop(void* argument) {
  Registrar* registrar = argument;
  const Pair* pair = registrar->pair;
  static unsigned char memory[1 << 16];
  while (!__atomic_load_n(&registrar->stop, __ATOMIC_ACQUIRE)) {
    void* mh = NULL;
    void* comm = registrar->rounds % 2 == 0 ? pair->send : pair->recv;
    REQUIRE_OK(net_reg_mr(pair->net, comm, memory, sizeof memory, NCCL_PTR_HOST, &mh));
    REQUIRE_OK(net_dereg_mr(pair->net, comm, mh));
    ++registrar->rounds;
  }
  return NULL;
}

/* NCCL registers user buffers on a service thread while the progress thread is at work. */
static void register_beside_traffic(const Pair* pair) {
  Registrar registrar = {pair, 0, 0};
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, register_in_a_loop, &registrar) == 0, "pthread_create");
  for (unsigned i = 0; i < 50; ++i) transfer(pair, 10000 + i, 20000, i);
  __atomic_store_n(&registrar.stop, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
}

static void refusals(const Pair* pair) {
  void* mh = (void*)(intptr_t)0x77;
  REQUIRE(net_reg_mr(pair->net, pair->send, pair->from, 4096, NCCL_PTR_CUDA, &mh) != ncclSuccess,
          "GPU memory was registered");
  REQUIRE(mh == (void*)(intptr_t)0x77, "an output was written on failure");
  REQUIRE(log_has("bytes of GPU memory"), "no line about it");
  Properties properties;
  REQUIRE(net_properties(pair->net, 1000, &properties) == ncclInvalidArgument, "device 1000");
}

static void walk(void* library, int version) {
  Net net = open_table(library, version);
  REQUIRE_OK(net_init(&net));
  int ndev = 0;
  REQUIRE_OK(net_devices(&net, &ndev));
  REQUIRE(ndev >= 1, "%d devices", ndev);
  for (int dev = 0; dev < ndev; ++dev) {
    Properties properties;
    REQUIRE_OK(net_properties(&net, dev, &properties));
    REQUIRE(properties.name[0] != '\0', "device %d has no name", dev);
    REQUIRE(properties.ptr_support == NCCL_PTR_HOST, "ptrSupport %d", properties.ptr_support);
    REQUIRE(properties.max_recvs == (version < kFirstWithTags ? 1 : kMaxGroup), "maxRecvs %d",
            properties.max_recvs);
    REQUIRE(properties.ndevs == 1, "vProps.ndevs %d", properties.ndevs);
  }

  /* v3 and v4 have 64 bytes: the bytes behind them must not change. */
  const size_t handle_size =
      version < kFirstNonBlocking ? NCCL_NET_HANDLE_MAXSIZE_V4 : NCCL_NET_HANDLE_MAXSIZE;
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE + 64];
  memset(handle, 0xbb, sizeof handle);
  void* listener = NULL;
  REQUIRE_OK(net_listen(&net, 0, handle, &listener));
  for (size_t i = handle_size; i < sizeof handle; ++i)
    REQUIRE(handle[i] == 0xbb, "handle byte %zu was written", i);

  Pair pair = {&net, NULL, NULL, malloc(kBiggest + 64), malloc(kBiggest * 2), NULL, NULL};
  pair.send = connect_until_done(&net, 0, handle);
  pair.recv = accept_until_done(&net, listener);
  REQUIRE_OK(net_close_listen(&net, listener));
  REQUIRE_OK(net_reg_mr(&net, pair.send, pair.from, kBiggest, NCCL_PTR_HOST, &pair.from_mh));
  REQUIRE_OK(net_reg_mr(&net, pair.recv, pair.to, kBiggest * 2, NCCL_PTR_HOST, &pair.to_mh));

  static const size_t sizes[] = {0,    1,     7,      8,      127,     128,
                                 4096, 65536, 131072, 131073, 1 << 20, kBiggest};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    transfer(&pair, sizes[i], sizes[i], i);
    transfer(&pair, sizes[i], sizes[i] + 4096, i + 100); /* A short receive. */
  }
  keep_order(&pair, 1);
  if (g_sends_ahead) keep_order(&pair, 0);
  pipeline(&pair);
  if (version >= kFirstWithTags) groups(&pair);
  too_large(&pair);
  fill_request_table(&pair);
  register_beside_traffic(&pair);
  refusals(&pair);
  void* request = (void*)(intptr_t)1;
  REQUIRE_OK(net_flush(&net, pair.recv, pair.to, 4096, pair.to_mh, &request));
  REQUIRE(request == NULL, "a flush of host memory has a request");

  /* NCCL's order: memory first, then the comms. */
  REQUIRE_OK(net_dereg_mr(&net, pair.send, pair.from_mh));
  REQUIRE_OK(net_dereg_mr(&net, pair.recv, pair.to_mh));
  memset(pair.from, 0x11, kBiggest);
  free(pair.from);
  free(pair.to);
  REQUIRE_OK(net_close_send(&net, pair.send));
  REQUIRE_OK(net_close_recv(&net, pair.recv));
  REQUIRE_OK(net_close_send(&net, NULL));
  REQUIRE_OK(net_close_recv(&net, NULL));
  REQUIRE_OK(net_close_listen(&net, NULL));
  REQUIRE_OK(net_finalize(&net));
  printf("v%d: walked\n", version);
}

int main(int argc, char** argv) {
  REQUIRE(argc >= 2, "usage: walk PLUGIN [VERSION [receives-first]]");
  g_sends_ahead = argc < 4;
  void* library = load_plugin(argv[1]);
  for (int version = kOldest; version <= kNewest; ++version)
    if (argc < 3 || atoi(argv[2]) == version) walk(library, version);
  return 0;
}
