/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's bootstrap over the plugin (NCCL_OOB_NET_ENABLE=1): a ring over all ranks of the job, with
 * a tag of one connection for each step.
 *
 *   bootstrap PLUGIN STEPS
 */
#include <stdlib.h>
#include <string.h>

#include "tests/abi/ranks.h"

enum { kBytes = 64, kAhead = 16, kTimeout = 100 };

static int g_steps;

static void fill(unsigned char* bytes, int tag, int rank) {
  memset(bytes, tag % 251 + rank, kBytes);
}

/* A few steps at once, so that a busy machine does not make each wait for its turn. */
static int run(Rank* r) {
  static unsigned char from[kAhead][kBytes], to[kAhead][kBytes];
  unsigned char expected[kBytes];
  void *receiving[kAhead], *sending[kAhead];
  for (int first = 0; first < g_steps; first += kAhead) {
    const int steps = g_steps - first < kAhead ? g_steps - first : kAhead;
    for (int i = 0; i < steps; ++i) {
      fill(from[i], first + i, r->number);
      receiving[i] = post_receive(r, to[i], kBytes, first + i);
      sending[i] = post_send(r, from[i], kBytes, first + i);
    }
    for (int i = 0; i < steps; ++i) {
      int size = 0;
      wait_for(&r->net, receiving[i], &size);
      wait_for(&r->net, sending[i], NULL);
      fill(expected, first + i, 1 - r->number);
      REQUIRE(size == kBytes && memcmp(expected, to[i], kBytes) == 0, "step %d", first + i);
    }
  }
  meet(r);
  return 0;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3, "usage: bootstrap PLUGIN STEPS");
  g_steps = atoi(argv[2]);
  const Ranks ranks = start_ranks(argv[1], run);
  int status[2];
  wait_for_ranks(&ranks, kTimeout, status);
  REQUIRE(status[0] == 0 && status[1] == 0, "statuses %#x and %#x", status[0], status[1]);
  return 0;
}
