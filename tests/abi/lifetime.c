/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Loads, unloads, forks, aborts and ends, in the ways of NCCL and the applications above it.
 *
 *   lifetime PLUGIN CASE
 */
#include <dirent.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/abi/driver.h"

typedef struct {
  Net net;
  void* listener;
  void* send;
  void* receive;
  void* from_mh;
  void* to_mh;
} Conversation;

static char g_from[300000];
static char g_to[sizeof g_from];

static int entries(const char* folder) {
  DIR* dir = opendir(folder);
  REQUIRE(dir != NULL, "%s", folder);
  int n = 0;
  while (readdir(dir) != NULL) ++n;
  closedir(dir);
  return n;
}

static Conversation begin(void* library, int version) {
  Conversation c = {open_table(library, version), NULL, NULL, NULL, NULL, NULL};
  REQUIRE_OK(net_init(&c.net));
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  REQUIRE_OK(net_listen(&c.net, 0, handle, &c.listener));
  c.send = connect_until_done(&c.net, 0, handle);
  c.receive = accept_until_done(&c.net, c.listener);
  REQUIRE_OK(net_close_listen(&c.net, c.listener));
  c.listener = NULL;
  REQUIRE_OK(net_reg_mr(&c.net, c.send, g_from, sizeof g_from, NCCL_PTR_HOST, &c.from_mh));
  REQUIRE_OK(net_reg_mr(&c.net, c.receive, g_to, sizeof g_to, NCCL_PTR_HOST, &c.to_mh));
  return c;
}

static void say(const Conversation* c, size_t size, char value) {
  memset(g_from, value, size);
  memset(g_to, 0, size);
  void* receiving = NULL;
  void* sending = NULL;
  REQUIRE_OK(net_irecv(&c->net, c->receive, 1, g_to, size, c->to_mh, &receiving));
  while (sending == NULL)
    REQUIRE_OK(net_isend(&c->net, c->send, g_from, size, c->from_mh, &sending));
  wait_for(&c->net, receiving, NULL);
  wait_for(&c->net, sending, NULL);
  REQUIRE(memcmp(g_from, g_to, size) == 0, "bytes differ");
}

/* NCCL's order: memory first, then the comms. */
static void end(Conversation* c) {
  REQUIRE_OK(net_dereg_mr(&c->net, c->send, c->from_mh));
  REQUIRE_OK(net_dereg_mr(&c->net, c->receive, c->to_mh));
  REQUIRE_OK(net_close_send(&c->net, c->send));
  REQUIRE_OK(net_close_recv(&c->net, c->receive));
  REQUIRE_OK(net_finalize(&c->net));
}

/* NCCL 2.28 and later unload the plugin after the last communicator and load it again. */
static void reload(const char* path) {
  for (int i = 0; i < 20; ++i) {
    void* library = load_plugin(path);
    Conversation c = begin(library, kOldest + i % (kNewest - kOldest + 1));
    say(&c, 5000, (char)i);
    end(&c);
    REQUIRE(dlclose(library) == 0, "%s", dlerror());
  }
}

/* A thread of the plugin's may release closed objects a moment later. */
static int comes_down_to(const char* folder, int wanted) {
  for (int looks = 0; looks < 5000; ++looks) {
    if (entries(folder) <= wanted) return 1;
    usleep(1000);
  }
  return 0;
}

static void hundred_communicators(const char* path) {
  void* library = load_plugin(path);
  int threads = 0;
  int descriptors = 0;
  for (int i = 0; i < 100; ++i) {
    Conversation c = begin(library, 11 + i % 2);
    say(&c, (size_t)(1 + i * 2900), (char)i);
    end(&c);
    if (i == 9) {
      threads = entries("/proc/self/task");
      descriptors = entries("/proc/self/fd");
    }
  }
  REQUIRE(comes_down_to("/proc/self/task", threads), "threads pile up");
  REQUIRE(comes_down_to("/proc/self/fd", descriptors), "descriptors pile up");
}

/* Communicators that exist at once and end in another order. */
static void overlapping_communicators(const char* path) {
  enum { kCommunicators = 8 };
  void* library = load_plugin(path);
  Conversation c[kCommunicators];
  for (int i = 0; i < kCommunicators; ++i) c[i] = begin(library, kNewest);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < kCommunicators; ++i) say(&c[i], (size_t)(40000 + i), (char)i);
  for (int i = 0; i < kCommunicators; ++i) end(&c[(i * 3) % kCommunicators]);
}

static void expect_refusals_in_child(const Conversation* c, void* library) {
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE] = {0};
  void* out = NULL;
  int number = 0;
  Properties properties;
  Net fresh = open_table(library, kNewest);
  REQUIRE(net_init(&fresh) == ncclSystemError, "init in a child");
  REQUIRE(net_devices(&c->net, &number) == ncclSystemError, "devices in a child");
  REQUIRE(net_properties(&c->net, 0, &properties) == ncclSystemError, "properties in a child");
  REQUIRE(net_listen(&c->net, 0, handle, &out) == ncclSystemError, "listen in a child");
  REQUIRE(net_connect(&c->net, 0, handle, &out) == ncclSystemError, "connect in a child");
  REQUIRE(net_reg_mr(&c->net, c->send, g_from, 64, NCCL_PTR_HOST, &out) == ncclSystemError,
          "regMr in a child");
  REQUIRE(net_isend(&c->net, c->send, g_from, 64, NULL, &out) == ncclSystemError,
          "isend in a child");
  REQUIRE(net_irecv(&c->net, c->receive, 1, g_to, 64, NULL, &out) == ncclSystemError,
          "irecv in a child");
  REQUIRE(net_test(&c->net, c->send, &number, NULL) == ncclSystemError, "test in a child");
  REQUIRE(net_close_send(&c->net, c->send) == ncclSystemError, "closeSend in a child");
  REQUIRE(net_close_recv(&c->net, c->receive) == ncclSystemError, "closeRecv in a child");
  Net copy = c->net;
  REQUIRE(net_finalize(&copy) == ncclSystemError, "finalize in a child");
}

/* PyTorch's data loaders: forked in the middle of training, ended with exit() or _exit(). */
static void fork_in_the_middle(const char* path) {
  void* library = load_plugin(path);
  Conversation c = begin(library, kNewest);
  say(&c, 100000, 'a');
  for (int quietly = 0; quietly < 2; ++quietly) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20); /* A child that hangs fails. */
      expect_refusals_in_child(&c, library);
      if (quietly) _exit(0);
      exit(0);
    }
    say(&c, 100000, 'b');
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child, "waitpid");
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x", status);
    say(&c, 100000, 'c'); /* Its end did not affect our connection. */
  }
  end(&c);
}

static void never_initialised(const char* path) {
  void* library = load_plugin(path);
  for (int version = kOldest; version <= kNewest; ++version) {
    Net net = open_table(library, version);
    REQUIRE_OK(net_finalize(&net));
    REQUIRE_OK(net_close_send(&net, NULL));
    REQUIRE_OK(net_close_recv(&net, NULL));
    REQUIRE_OK(net_close_listen(&net, NULL));
    int ndev = 0;
    REQUIRE(net_devices(&net, &ndev) != ncclSuccess, "devices before init");
  }
}

/* NCCL closes a comm twice, or after the communicator's end, when a set-up failed half-way. */
static void closed_twice(const char* path) {
  void* library = load_plugin(path);
  Conversation c = begin(library, kNewest);
  REQUIRE_OK(net_close_send(&c.net, c.send));
  REQUIRE_OK(net_close_send(&c.net, c.send));
  REQUIRE_OK(net_finalize(&c.net));
  REQUIRE_OK(net_close_recv(&c.net, c.receive));
}

static void put_in_flight(const Conversation* c) {
  for (int i = 0; i < 8; ++i) {
    void* request = NULL;
    REQUIRE_OK(net_irecv(&c->net, c->receive, 1, g_to, sizeof g_to, c->to_mh, &request));
    REQUIRE_OK(net_isend(&c->net, c->send, g_from, sizeof g_from, c->from_mh, &request));
  }
}

/* ncclCommAbort: all comms are closed while requests are in flight, then the memory is freed. */
static void abort_in_flight(const char* path) {
  void* library = load_plugin(path);
  for (int i = 0; i < 10; ++i) {
    Conversation c = begin(library, kNewest);
    put_in_flight(&c);
    end(&c);
    memset(g_to, 0x77, sizeof g_to);
  }
  Conversation c = begin(library, kNewest);
  say(&c, sizeof g_from, 'z');
  end(&c);
}

/* Objects that a communicator left open end with it: a listener, a half-open and an open comm. */
static void half_open(const char* path) {
  void* library = load_plugin(path);
  for (int i = 0; i < 20; ++i) {
    Conversation c = begin(library, kNewest);
    unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
    void* listener = NULL;
    void* comm = NULL;
    REQUIRE_OK(net_listen(&c.net, 0, handle, &listener));
    REQUIRE_OK(net_connect(&c.net, 0, handle, &comm));
    REQUIRE_OK(net_finalize(&c.net));
  }
}

/* Applications often end without destroying anything. The parent measures the time. */
static void end_without_closing(const char* path) {
  struct timespec start;
  struct timespec stop;
  clock_gettime(CLOCK_MONOTONIC, &start);
  const pid_t child = fork();
  if (child == 0) {
    void* library = load_plugin(path);
    Conversation c = begin(library, kNewest);
    say(&c, 1000, 'x');
    put_in_flight(&c);
    exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child, "waitpid");
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the process ended with %x", status);
  clock_gettime(CLOCK_MONOTONIC, &stop);
  REQUIRE(stop.tv_sec - start.tv_sec <= 15, "the end took %ld s",
          (long)(stop.tv_sec - start.tv_sec));
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(const char* path);
  } kCases[] = {
      {"reload", reload},
      {"hundred_communicators", hundred_communicators},
      {"overlapping_communicators", overlapping_communicators},
      {"fork_in_the_middle", fork_in_the_middle},
      {"never_initialised", never_initialised},
      {"closed_twice", closed_twice},
      {"abort_in_flight", abort_in_flight},
      {"half_open", half_open},
      {"end_without_closing", end_without_closing},
  };
  REQUIRE(argc == 3, "usage: lifetime PLUGIN CASE");
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i)
    if (strcmp(argv[2], kCases[i].name) == 0) {
      kCases[i].run(argv[1]);
      return 0;
    }
  REQUIRE(0, "no case %s", argv[2]);
}
