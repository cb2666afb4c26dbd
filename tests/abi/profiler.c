/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * A profiler of network events, as NCCL puts one behind its callback: each message's events start
 * and stop once, in every way that a message can end.
 *
 *   profiler PLUGIN sock|ib VERSION
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/abi/nccl_profiler.h"
#include "tests/abi/driver.h"

enum { kMostEvents = 4096, kBytes = 300000, kRounds = 20, kInFlight = 8 };

typedef struct {
  int64_t plugin;
  int op; /* As of a socket's event, for both kinds. */
  int queue_pair;
  size_t length;
  int stops;
} Event;

static Event g_events[kMostEvents];
static int g_count;
static int g_calls;
static int g_is_on = 1;
static ncclProfilerStepHandle_v2_27_t g_step;
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;

static ncclResult_t record(void** event, int type, void* handle, int64_t plugin, void* data) {
  pthread_mutex_lock(&g_mutex);
  ++g_calls;
  if (type == ncclProfilerNetEventStart) {
    REQUIRE(handle == &g_step, "another handle: %p", handle);
    REQUIRE(*event == NULL, "an event that has started");
    if (g_is_on) {
      REQUIRE(g_count < kMostEvents, "too many events");
      Event* begun = &g_events[g_count++];
      begun->plugin = plugin;
      if (plugin == (NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER)) {
        const ncclProfilerNetIbDescr_v1_t* of = data;
        REQUIRE(of->type == ncclProfileQp, "type %d", of->type);
        begun->op = of->qp.opcode == 1 ? NCCL_SOCKET_SEND : NCCL_SOCKET_RECV;
        begun->queue_pair = of->qp.qpNum;
        begun->length = of->qp.length;
      } else {
        const ncclProfilerNetSockDescr_v1_t* of = data;
        REQUIRE(of->type == ncclProfileSocket && of->sock.fd == -1, "type %d", of->type);
        begun->op = of->sock.op;
        begun->length = of->sock.length;
      }
      *event = begun;
    }
  } else {
    REQUIRE(type == ncclProfilerNetEventStop, "type %d", type);
    REQUIRE(*event != NULL, "a stop of no event");
    ++((Event*)*event)->stops;
  }
  pthread_mutex_unlock(&g_mutex);
  return ncclSuccess;
}

static int count(int op) {
  int n = 0;
  for (int i = 0; i < g_count; ++i) n += g_events[i].op == op;
  return n;
}

static size_t bytes(int op) {
  size_t sum = 0;
  for (int i = 0; i < g_count; ++i)
    if (g_events[i].op == op) sum += g_events[i].length;
  return sum;
}

static void require_stopped(const char* when) {
  for (int i = 0; i < g_count; ++i)
    REQUIRE(g_events[i].stops == 1, "event %d of %d stopped %d times %s", i, g_count,
            g_events[i].stops, when);
}

typedef struct {
  Net net;
  void* send;
  void* receive;
  void* from_mh;
  void* to_mh;
  unsigned char* from;
  unsigned char* to;
} Ends;

static Ends open_ends(void* library, int version) {
  Ends e = {.net = open_table(library, version), .from = calloc(1, kBytes), .to = malloc(kBytes)};
  REQUIRE_OK(net_init(&e.net));
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  REQUIRE_OK(net_listen(&e.net, 0, handle, &listener));
  e.send = connect_until_done(&e.net, 0, handle);
  e.receive = accept_until_done(&e.net, listener);
  REQUIRE_OK(net_close_listen(&e.net, listener));
  REQUIRE_OK(net_reg_mr(&e.net, e.send, e.from, kBytes, NCCL_PTR_HOST, &e.from_mh));
  REQUIRE_OK(net_reg_mr(&e.net, e.receive, e.to, kBytes, NCCL_PTR_HOST, &e.to_mh));
  g_count = g_calls = 0;
  memset(g_events, 0, sizeof g_events);
  return e;
}

/* NCCL's order: memory first, then the comms. */
static void close_ends(Ends* e) {
  REQUIRE_OK(net_dereg_mr(&e->net, e->send, e->from_mh));
  REQUIRE_OK(net_dereg_mr(&e->net, e->receive, e->to_mh));
  REQUIRE_OK(net_close_send(&e->net, e->send));
  REQUIRE_OK(net_close_recv(&e->net, e->receive));
  REQUIRE_OK(net_finalize(&e->net));
  free(e->from);
  free(e->to);
}

static void post(const Ends* e, size_t size, void** receive, void** send) {
  while (*receive == NULL)
    REQUIRE_OK(net_irecv(&e->net, e->receive, 1, e->to, kBytes, e->to_mh, receive));
  while (*send == NULL) REQUIRE_OK(net_isend(&e->net, e->send, e->from, size, e->from_mh, send));
}

static void exchange(const Ends* e, size_t size) {
  void* receive = NULL;
  void* send = NULL;
  int received = 0;
  post(e, size, &receive, &send);
  wait_for(&e->net, receive, &received);
  wait_for(&e->net, send, NULL);
  REQUIRE(received == (int)size, "%d bytes of %zu", received, size);
}

static void every_message(void* library, int version, int64_t plugin) {
  Ends e = open_ends(library, version);
  size_t sum = 0;
  for (int i = 0; i < kRounds; ++i) {
    const size_t size = i % 2 == 0 ? 8 : kBytes - (size_t)i;
    exchange(&e, size);
    require_stopped("after its message");
    sum += size;
  }
  REQUIRE(count(NCCL_SOCKET_RECV) == kRounds, "%d receives", count(NCCL_SOCKET_RECV));
  REQUIRE(count(NCCL_SOCKET_SEND) >= kRounds, "%d sends", count(NCCL_SOCKET_SEND));
  REQUIRE(bytes(NCCL_SOCKET_SEND) == sum, "%zu bytes of %zu", bytes(NCCL_SOCKET_SEND), sum);
  REQUIRE(bytes(NCCL_SOCKET_RECV) == (size_t)kRounds * kBytes, "%zu bytes of buffers",
          bytes(NCCL_SOCKET_RECV));
  for (int i = 0; i < g_count; ++i) {
    REQUIRE(g_events[i].plugin == plugin, "plugin %lx", (unsigned long)g_events[i].plugin);
    REQUIRE((g_events[i].queue_pair != 0) == (plugin >> 16 == 1), "queue pair %d",
            g_events[i].queue_pair);
  }
  close_ends(&e);
}

/* ncclCommAbort. */
static void close_in_flight(void* library, int version) {
  Ends e = open_ends(library, version);
  for (int i = 0; i < kInFlight; ++i) {
    void* request = NULL;
    REQUIRE_OK(net_irecv(&e.net, e.receive, 1, e.to, kBytes, e.to_mh, &request));
    REQUIRE(request != NULL, "no receive");
  }
  REQUIRE(g_count == kInFlight && g_events[0].stops == 0, "%d events", g_count);
  const int begun = g_count;
  close_ends(&e);
  REQUIRE(g_count == begun, "events started at the end");
  require_stopped("by close");
}

/* The peer is gone: the receive fails, and may be tested again. */
static void failing(void* library, int version) {
  Ends e = open_ends(library, version);
  void* request = NULL;
  REQUIRE_OK(net_irecv(&e.net, e.receive, 1, e.to, kBytes, e.to_mh, &request));
  REQUIRE(request != NULL && g_count == 1, "%d events", g_count);
  REQUIRE_OK(net_dereg_mr(&e.net, e.send, e.from_mh));
  REQUIRE_OK(net_close_send(&e.net, e.send));
  int done = 0;
  const time_t end = time(NULL) + 5;
  while (net_test(&e.net, request, &done, NULL) == ncclSuccess)
    if (done || time(NULL) > end) break; /* The transport in memory never fails. */
  if (!done && time(NULL) <= end) {
    require_stopped("after the failure");
    REQUIRE(net_test(&e.net, request, &done, NULL) != ncclSuccess, "it failed only once");
  }
  REQUIRE_OK(net_dereg_mr(&e.net, e.receive, e.to_mh));
  REQUIRE_OK(net_close_recv(&e.net, e.receive));
  REQUIRE_OK(net_finalize(&e.net));
  require_stopped("at the end");
  free(e.from);
  free(e.to);
}

/* NCCL without a profiler passes the same callback and handles: one call for each message. */
static void switched_off(void* library, int version) {
  g_is_on = 0;
  Ends e = open_ends(library, version);
  for (int i = 0; i < kRounds; ++i) exchange(&e, kBytes);
  REQUIRE(g_calls == 2 * kRounds, "%d calls", g_calls);
  close_ends(&e);
  REQUIRE(g_calls == 2 * kRounds, "%d calls after the end", g_calls);
  g_is_on = 1;
}

/* NCCL 2.27's handle of a step that it does not profile. */
static void unprofiled(void* library, int version) {
  if (version != 10) return;
  g_step.subArgs = NULL;
  Ends e = open_ends(library, version);
  exchange(&e, kBytes);
  REQUIRE(g_calls == 0, "%d calls", g_calls);
  close_ends(&e);
  g_step.subArgs = &g_step;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 4, "usage: profiler PLUGIN sock|ib VERSION");
  alarm(100);
  void* library = load_plugin(argv[1]);
  const int version = atoi(argv[3]);
  g_step.subArgs = &g_step;
  g_profiler.callback = record;
  g_profiler.handle = &g_step;
  const int64_t plugin = strcmp(argv[2], "ib") == 0
                             ? NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER
                             : NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER;
  every_message(library, version, plugin);
  close_in_flight(library, version);
  failing(library, version);
  switched_off(library, version);
  unprofiled(library, version);
  return 0;
}
