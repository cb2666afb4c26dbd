// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Preloaded into a rank: on SIGUSR1 it forks from its own thread, as a data loader does, and the
// child lives on.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void* wait_and_fork(void* signals) {
  int number;
  sigwait(signals, &number);
  const pid_t child = fork();
  if (child == 0) {
    // Open, they would make the login that started the rank wait.
    for (int fd = 0; fd <= 2; ++fd) close(fd);
    for (;;) pause();
  }
  fprintf(stderr, "child %d\n", (int)child);
  return NULL;
}

__attribute__((constructor)) static void start(void) {
  static sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_and_fork, &signals);
}
