/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Two ranks of a job, each a process, that are connected both ways over the plugin's first device.
 */
#pragma once

#include <sys/types.h>

#include "tests/abi/driver.h"

typedef struct {
  Net net;
  int number; /* 0 or 1 */
  int wire;   /* To the other rank, in the place of NCCL's bootstrap. */
  void* send;
  void* receive;
} Rank;

typedef struct {
  pid_t pids[2];
} Ranks;

/* Each runs `body` once both are connected, and calls exit() with its result. */
Ranks start_ranks(const char* plugin, int (*body)(Rank*));
/* Their statuses, as from waitpid(). Ends the test, and the ranks, after `seconds`. */
void wait_for_ranks(const Ranks* ranks, int seconds, int status[2]);

/* Waits until the other rank has called it as often. */
void meet(const Rank* rank);

void* post_send(const Rank* rank, void* data, size_t size, int tag);
void* post_receive(const Rank* rank, void* data, size_t size, int tag);
double seconds_now(void);
