/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * A process ends in the middle of its traffic, over kernel sockets.
 *
 *   process_end PLUGIN done_then_exit COUNT BYTES     completed messages arrive all the same
 *   process_end PLUGIN done_then_late_receive         also where its buffers are posted later
 *   process_end PLUGIN killed                         and where the sender is killed at any moment
 *   process_end PLUGIN exit_in_handler                exit() does not allocate on its thread
 *   process_end PLUGIN memory_gone                    no peer writes to memory that an exit handler
 *                                                     registered before the plugin takes away
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/ranks.h"

enum { kRounds = 20, kTimeout = 60, kNotAll = 7, kHasAllocated = 8 };

static int g_count;
static size_t g_bytes;
static unsigned g_late_us;

/* --- The heap of this program ---------------------------------------------------------------- */

#ifdef ZTCP_WATCHES_HEAP
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* from, size_t size);

/* The thread that exits must not allocate from then on: it may have been inside malloc(). */
static _Atomic pthread_t g_exiting;
static atomic_int g_is_exiting;

static void look(void) {
  if (!atomic_load(&g_is_exiting) || !pthread_equal(pthread_self(), atomic_load(&g_exiting)))
    return;
  static const char kWord[] = "the exiting thread allocates\n";
  if (write(STDERR_FILENO, kWord, sizeof kWord - 1) > 0) _exit(kHasAllocated);
  _exit(kHasAllocated);
}

void* malloc(size_t size) {
  look();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  look();
  return __libc_calloc(count, size);
}
void* realloc(void* from, size_t size) {
  look();
  return __libc_realloc(from, size);
}
static void note_exit(void) {
  atomic_store(&g_exiting, pthread_self());
  atomic_store(&g_is_exiting, 1);
}
#else
static void note_exit(void) {}
#endif

/* --- Completed messages arrive --------------------------------------------------------------- */

static int send_all_and_exit(Rank* r) {
  char* const bytes = calloc((size_t)g_count, g_bytes);
  void** const requests = calloc((size_t)g_count, sizeof *requests);
  int posted = 0;
  for (int done = 0; done < g_count;) {
    if (posted < g_count) {
      char* const from = bytes + (size_t)posted * g_bytes;
      REQUIRE_OK(net_isend_tagged(&r->net, r->send, from, g_bytes, 0, NULL, &requests[posted]));
      if (requests[posted] != NULL) ++posted;
    }
    int is_done = 0;
    if (done < posted) REQUIRE_OK(net_test(&r->net, requests[done], &is_done, NULL));
    done += is_done;
  }
  _exit(0);
}

static int receive_all(Rank* r) {
  char* const bytes = calloc((size_t)g_count, g_bytes);
  usleep(g_late_us);
  for (int i = 0; i < g_count; ++i) {
    void* request = NULL;
    void* mh = NULL;
    void* to = bytes + (size_t)i * g_bytes;
    int tag = 0;
    int is_done = 0;
    ncclResult_t result = ncclSuccess;
    while (result == ncclSuccess && request == NULL)
      result = net_irecv_group(&r->net, r->receive, 1, &to, &g_bytes, &tag, &mh, &request);
    while (result == ncclSuccess && !is_done) result = net_test(&r->net, request, &is_done, NULL);
    if (result == ncclSuccess) continue;
    fprintf(stderr, "%d of %d messages have come\n%s", i, g_count, g_log);
    _exit(kNotAll);
  }
  _exit(0);
}

static int sender_exits(Rank* r) { return r->number == 0 ? send_all_and_exit(r) : receive_all(r); }

static void done_then_exit(const char* plugin, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const Ranks ranks = start_ranks(plugin, sender_exits);
    int status[2];
    wait_for_ranks(&ranks, kTimeout, status);
    REQUIRE(status[0] == 0 && status[1] == 0, "round %d: statuses %#x and %#x", i, status[0],
            status[1]);
  }
}

/* --- Completed messages arrive after a kill at any moment ------------------------------------ */

typedef struct {
  atomic_int done;
  atomic_int received;
} Counts;
static Counts* g_counts;

static void send_for_ever(Rank* r) {
  enum { kAhead = 32, kMost = 4096 };
  static char bytes[kAhead][kMost];
  void* requests[kAhead] = {NULL};
  for (int posted = 0, done = 0;;) {
    int is_done = 0;
    if (posted - done < kAhead) {
      const size_t size = posted / 100 % 2 == 0 ? 8 : (size_t)(posted % kMost);
      requests[posted % kAhead] = post_send(r, bytes[posted % kAhead], size, 0);
      ++posted;
    }
    while (done < posted) {
      REQUIRE_OK(net_test(&r->net, requests[done % kAhead], &is_done, NULL));
      if (!is_done) break;
      ++done;
      atomic_fetch_add(&g_counts->done, 1);
    }
  }
}

static void receive_until_it_fails(Rank* r) {
  static char bytes[4096];
  for (;;) {
    void* request = NULL;
    void* mh = NULL;
    void* to = bytes;
    size_t room = sizeof bytes;
    int tag = 0;
    int is_done = 0;
    ncclResult_t result = ncclSuccess;
    while (result == ncclSuccess && request == NULL)
      result = net_irecv_group(&r->net, r->receive, 1, &to, &room, &tag, &mh, &request);
    while (result == ncclSuccess && !is_done) result = net_test(&r->net, request, &is_done, NULL);
    if (result != ncclSuccess) _exit(0);
    atomic_fetch_add(&g_counts->received, 1);
  }
}

static int stream_messages(Rank* r) {
  if (r->number == 0)
    send_for_ever(r);
  else
    receive_until_it_fails(r);
  return 0;
}

static void killed(const char* plugin) {
  g_counts =
      mmap(NULL, sizeof *g_counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(g_counts != MAP_FAILED, "mmap");
  srand((unsigned)getpid());
  for (int i = 0; i < kRounds; ++i) {
    atomic_store(&g_counts->done, 0);
    atomic_store(&g_counts->received, 0);
    const Ranks ranks = start_ranks(plugin, stream_messages);
    while (atomic_load(&g_counts->done) < 20) usleep(100);
    usleep((unsigned)(rand() % 20000));
    kill(ranks.pids[0], SIGKILL);
    int status[2];
    wait_for_ranks(&ranks, kTimeout, status);
    const int done = atomic_load(&g_counts->done);
    const int received = atomic_load(&g_counts->received);
    REQUIRE(WIFEXITED(status[1]) && WEXITSTATUS(status[1]) == 0, "status %#x", status[1]);
    REQUIRE(received >= done, "round %d: of %d completed messages %d arrived", i, done, received);
  }
}

/* --- exit() ---------------------------------------------------------------------------------- */

static void on_alarm(int number) {
  (void)number;
  note_exit();
  exit(0);
}

/* Rank 1 exits with a receive posted while its sender goes on. */
static int leave_in_a_handler(Rank* r) {
  static char bytes[1 << 16];
  if (r->number == 1) {
    post_receive(r, bytes, sizeof bytes, 0);
    signal(SIGALRM, on_alarm);
    raise(SIGALRM);
  }
  void* request = post_receive(r, bytes, sizeof bytes, 0);
  int is_done = 0;
  while (net_test(&r->net, request, &is_done, NULL) == ncclSuccess && !is_done) {
  }
  return is_done; /* The end of the peer must be reported. */
}

static void exit_in_handler(const char* plugin) {
  const Ranks ranks = start_ranks(plugin, leave_in_a_handler);
  int status[2];
  wait_for_ranks(&ranks, kTimeout, status);
  REQUIRE(status[0] == 0 && status[1] == 0, "statuses %#x and %#x", status[0], status[1]);
}

static void* g_memory;
enum { kPosted = 8, kLarge = 256 << 10 };

/* As CUDA releases pinned memory. */
static void take_memory_away(void) {
  munmap(g_memory, (size_t)kPosted * kLarge);
  usleep(300000);
}

static int leave_with_memory_posted(Rank* r) {
  if (r->number == 0) {
    static char bytes[kLarge];
    void* sending[kPosted] = {NULL};
    for (int i = 0;; i = (i + 1) % kPosted) {
      int is_done = 0;
      ncclResult_t result = ncclSuccess;
      if (sending[i] == NULL)
        result = net_isend_tagged(&r->net, r->send, bytes, sizeof bytes, 0, NULL, &sending[i]);
      else
        result = net_test(&r->net, sending[i], &is_done, NULL);
      if (result != ncclSuccess) _exit(0);
      if (is_done) sending[i] = NULL;
    }
  }
  void* receiving[kPosted];
  for (int i = 0; i < kPosted; ++i)
    receiving[i] = post_receive(r, (char*)g_memory + (size_t)i * kLarge, kLarge, 0);
  for (int round = 0; round < 100; ++round) {
    const int i = round % kPosted;
    wait_for(&r->net, receiving[i], NULL);
    receiving[i] = post_receive(r, (char*)g_memory + (size_t)i * kLarge, kLarge, 0);
  }
  return 0; /* start_ranks() calls exit(). */
}

static void memory_gone(const char* plugin) {
  g_memory = mmap(NULL, (size_t)kPosted * kLarge, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(g_memory != MAP_FAILED, "mmap");
  REQUIRE(atexit(take_memory_away) == 0, "atexit");
  const Ranks ranks = start_ranks(plugin, leave_with_memory_posted);
  int status[2];
  wait_for_ranks(&ranks, kTimeout, status);
  REQUIRE(status[0] == 0 && status[1] == 0, "statuses %#x and %#x", status[0], status[1]);
}

int main(int argc, char** argv) {
  REQUIRE(argc >= 3, "usage: process_end PLUGIN CASE [COUNT BYTES]");
  const char* const name = argv[2];
  if (strcmp(name, "done_then_exit") == 0) {
    REQUIRE(argc == 5, "usage: process_end PLUGIN done_then_exit COUNT BYTES");
    g_count = atoi(argv[3]);
    g_bytes = (size_t)atol(argv[4]);
    done_then_exit(argv[1], kRounds);
  } else if (strcmp(name, "done_then_late_receive") == 0) {
    g_count = 8;
    g_bytes = 1024;
    g_late_us = 3000000;
    done_then_exit(argv[1], 2);
  } else if (strcmp(name, "killed") == 0) {
    killed(argv[1]);
  } else if (strcmp(name, "exit_in_handler") == 0) {
    exit_in_handler(argv[1]);
  } else if (strcmp(name, "memory_gone") == 0) {
    memory_gone(argv[1]);
  } else {
    REQUIRE(0, "no case %s", name);
  }
  return 0;
}
