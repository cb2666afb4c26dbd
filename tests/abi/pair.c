/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Two processes, each with its own NIC, send to each other at the same time, to single buffers and
 * to groups of them, and compare every byte; then one is killed and the other must get
 * ncclRemoteError.
 *
 *   pair PLUGIN [VERSION]
 */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/abi/driver.h"

enum { kBytes = 3 << 20, kRounds = 12, kDeathSeconds = 60 };

typedef struct {
  Net net;
  int rank;
  int wire; /* Between the ranks, in the place of NCCL's bootstrap. */
  void* send;
  void* receive;
  unsigned char* from;
  unsigned char* to;
  void* from_mh;
  void* to_mh;
} Rank;

static void tell(const Rank* r, const void* bytes, size_t size) {
  REQUIRE(write(r->wire, bytes, size) == (ssize_t)size, "the other rank is gone");
}

static void hear(const Rank* r, void* bytes, size_t size) {
  REQUIRE(recv(r->wire, bytes, size, MSG_WAITALL) == (ssize_t)size, "the other rank is gone");
}

/* Both connect before either accepts, as in NCCL. */
static void join(Rank* r) {
  REQUIRE_OK(net_init(&r->net));
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  unsigned char peer[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  REQUIRE_OK(net_listen(&r->net, r->rank, handle, &listener));
  tell(r, handle, sizeof handle);
  hear(r, peer, sizeof peer);
  r->send = connect_until_done(&r->net, r->rank, peer);
  r->receive = accept_until_done(&r->net, listener);
  REQUIRE_OK(net_close_listen(&r->net, listener));
  REQUIRE_OK(net_reg_mr(&r->net, r->send, r->from, kBytes, NCCL_PTR_HOST, &r->from_mh));
  REQUIRE_OK(net_reg_mr(&r->net, r->receive, r->to, kBytes, NCCL_PTR_HOST, &r->to_mh));
}

static void pattern(unsigned char* bytes, size_t size, int rank, int round) {
  for (size_t i = 0; i < size; ++i)
    bytes[i] = (unsigned char)(i * 31 + i / 251 + (size_t)rank * 77 + (size_t)round * 13);
}

static void exchange(Rank* r, int round) {
  static const size_t kSizes[] = {0, 8, 1000, 131072, 131073, kBytes};
  const size_t size = kSizes[round % 6];
  void* receiving = NULL;
  void* sending = NULL;
  memset(r->to, 0, kBytes);
  while (receiving == NULL)
    REQUIRE_OK(net_irecv(&r->net, r->receive, 1, r->to, kBytes, r->to_mh, &receiving));
  pattern(r->from, size, r->rank, round);
  while (sending == NULL)
    REQUIRE_OK(net_isend(&r->net, r->send, r->from, size, r->from_mh, &sending));
  int received = -1;
  wait_for(&r->net, receiving, &received);
  wait_for(&r->net, sending, NULL);
  REQUIRE(received == (int)size, "round %d: %d bytes instead of %zu", round, received, size);
  pattern(r->from, size, 1 - r->rank, round);
  REQUIRE(memcmp(r->from, r->to, size) == 0, "round %d: bytes differ", round);
}

/* A group of as many buffers as the table allows, some of them large, all of different sizes; the
 * peer sends to the last one first. */
static void exchange_group(Rank* r, int round) {
  enum { kPart = kBytes / kMaxGroup };
  const int n = r->net.version < kFirstWithTags ? 1 : 2 + round % (kMaxGroup - 1);
  void* at[kMaxGroup];
  void* mhs[kMaxGroup];
  size_t posted[kMaxGroup];
  int tags[kMaxGroup];
  void* sending[kMaxGroup];
  memset(r->to, 0, kBytes);
  for (int i = 0; i < n; ++i) {
    at[i] = r->to + (size_t)i * kPart;
    mhs[i] = r->to_mh;
    posted[i] = kPart;
    tags[i] = i * 3 + round % 2;
  }
  void* receiving = NULL;
  while (receiving == NULL)
    REQUIRE_OK(net_irecv_group(&r->net, r->receive, n, at, posted, tags, mhs, &receiving));
  pattern(r->from, kBytes, r->rank, round);
  for (int i = n - 1; i >= 0; --i) {
    const size_t size = (size_t)(kPart - i * 40000);
    sending[i] = NULL;
    while (sending[i] == NULL)
      REQUIRE_OK(net_isend_tagged(&r->net, r->send, r->from + (size_t)i * kPart, size, tags[i],
                                  r->from_mh, &sending[i]));
  }
  int sizes[kMaxGroup];
  wait_for(&r->net, receiving, sizes);
  for (int i = 0; i < n; ++i) wait_for(&r->net, sending[i], NULL);
  pattern(r->from, kBytes, 1 - r->rank, round);
  for (int i = 0; i < n; ++i) {
    REQUIRE(sizes[i] == kPart - i * 40000, "group %d: buffer %d has %d bytes", round, i, sizes[i]);
    REQUIRE(memcmp(r->from + (size_t)i * kPart, at[i], (size_t)sizes[i]) == 0,
            "group %d: buffer %d differs", round, i);
  }
}

/* The peer is killed while a receive is posted. */
static void outlive(Rank* r) {
  const time_t start = time(NULL);
  void* receiving = NULL;
  REQUIRE_OK(net_irecv(&r->net, r->receive, 1, r->to, kBytes, r->to_mh, &receiving));
  for (;;) {
    int done = 0;
    const ncclResult_t result = net_test(&r->net, receiving, &done, NULL);
    if (result != ncclSuccess) {
      REQUIRE(result == ncclRemoteError, "a dead peer reads as %d", result);
      break;
    }
    REQUIRE(!done, "a message arrived from nowhere");
    REQUIRE(time(NULL) - start < kDeathSeconds, "the peer's death is not detected in time");
    usleep(1000);
  }
  REQUIRE(log_has("receiving from 10.77.1.1"), "the dead peer is not named");
  REQUIRE_OK(net_dereg_mr(&r->net, r->send, r->from_mh));
  REQUIRE_OK(net_dereg_mr(&r->net, r->receive, r->to_mh));
  REQUIRE_OK(net_close_send(&r->net, r->send));
  REQUIRE_OK(net_close_recv(&r->net, r->receive));
  REQUIRE_OK(net_finalize(&r->net));
}

static void run(const char* plugin, int version, int rank, int wire) {
  alarm(180);
  setenv("ZTCP_LOCAL_RANK", rank == 0 ? "0" : "1", 1);
  Rank r = {open_table(load_plugin(plugin), version),
            rank,
            wire,
            NULL,
            NULL,
            malloc(kBytes),
            malloc(kBytes),
            NULL,
            NULL};
  join(&r);
  for (int round = 0; round < kRounds; ++round) exchange(&r, round);
  for (int round = 0; round < kRounds; ++round) exchange_group(&r, round);
  char done = 'd';
  tell(&r, &done, 1);
  hear(&r, &done, 1);
  if (rank == 1) raise(SIGKILL);
  outlive(&r);
}

int main(int argc, char** argv) {
  REQUIRE(argc >= 2, "usage: pair PLUGIN [VERSION]");
  const int version = argc > 2 ? atoi(argv[2]) : kNewest;
  int wires[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, wires) == 0, "socketpair");
  const pid_t peer = fork();
  if (peer == 0) {
    close(wires[0]);
    run(argv[1], version, 1, wires[1]);
    exit(0);
  }
  close(wires[1]);
  run(argv[1], version, 0, wires[0]);
  int status = 0;
  REQUIRE(waitpid(peer, &status, 0) == peer, "waitpid");
  REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the peer ended with %x", status);
  return 0;
}
