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
  int wire;   /* To the other one, for what NCCL's bootstrap carries. */
  void* send;
  void* receive;
} Rank;

typedef struct {
  pid_t pids[2];
} Ranks;

/* Each runs `body` once both are connected, and calls exit() with what it returns. */
Ranks start_ranks(const char* plugin, int (*body)(Rank*));
/* The status of each as waitpid() tells it. Ends the test, and the ranks, after `seconds`. */
void wait_for_ranks(const Ranks* ranks, int seconds, int status[2]);

/* Waits until the other one has called it as often. */
void meet(const Rank* rank);

void* post_send(const Rank* rank, void* data, size_t size, int tag);
void* post_receive(const Rank* rank, void* data, size_t size, int tag);
double seconds_now(void);
