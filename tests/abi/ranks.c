/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 */
#include "tests/abi/ranks.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kVersion = 11 };

static void tell(const Rank* r, const void* bytes, size_t size) {
  REQUIRE(write(r->wire, bytes, size) == (ssize_t)size, "the other rank is gone");
}

static void hear(const Rank* r, void* bytes, size_t size) {
  REQUIRE(recv(r->wire, bytes, size, MSG_WAITALL) == (ssize_t)size, "the other rank is gone");
}

void meet(const Rank* r) {
  char word = 1;
  tell(r, &word, 1);
  hear(r, &word, 1);
}

static void join(Rank* r, const char* plugin) {
  r->net = open_table(load_plugin(plugin), kVersion);
  REQUIRE_OK(net_init(&r->net));
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE] = {0};
  unsigned char peer[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  REQUIRE_OK(net_listen(&r->net, 0, handle, &listener));
  tell(r, handle, sizeof handle);
  hear(r, peer, sizeof peer);
  r->send = connect_until_done(&r->net, 0, peer);
  r->receive = accept_until_done(&r->net, listener);
}

Ranks start_ranks(const char* plugin, int (*body)(Rank*)) {
  Ranks ranks;
  int wire[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire) == 0, "socketpair");
  fflush(NULL);
  for (int i = 0; i < 2; ++i) {
    ranks.pids[i] = fork();
    REQUIRE(ranks.pids[i] >= 0, "fork");
    if (ranks.pids[i] != 0) continue;
    close(wire[1 - i]);
    Rank rank = {.number = i, .wire = wire[i]};
    join(&rank, plugin);
    meet(&rank);
    exit(body(&rank));
  }
  close(wire[0]);
  close(wire[1]);
  return ranks;
}

void wait_for_ranks(const Ranks* ranks, int seconds, int status[2]) {
  const double ends = seconds_now() + seconds;
  int left = 2;
  pid_t pids[2] = {ranks->pids[0], ranks->pids[1]};
  while (left != 0 && seconds_now() < ends) {
    for (int i = 0; i < 2; ++i)
      if (pids[i] != 0 && waitpid(pids[i], &status[i], WNOHANG) == pids[i]) pids[i] = 0, --left;
    usleep(1000);
  }
  for (int i = 0; i < 2; ++i)
    if (pids[i] != 0) kill(pids[i], SIGKILL);
  REQUIRE(left == 0, "rank %d has not ended after %d s", pids[0] != 0 ? 0 : 1, seconds);
}

double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void* post_send(const Rank* r, void* data, size_t size, int tag) {
  void* request = NULL;
  while (request == NULL)
    REQUIRE_OK(net_isend_tagged(&r->net, r->send, data, size, tag, NULL, &request));
  return request;
}

void* post_receive(const Rank* r, void* data, size_t size, int tag) {
  void* request = NULL;
  void* mh = NULL;
  while (request == NULL)
    REQUIRE_OK(net_irecv_group(&r->net, r->receive, 1, &data, &size, &tag, &mh, &request));
  return request;
}
