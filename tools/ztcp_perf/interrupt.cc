// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <unistd.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

std::atomic<int> g_signal{0};
std::atomic<int> g_exit_code{0};
static_assert(std::atomic<int>::is_always_lock_free);

void install(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void note_interrupts(bool ignore_sigint) {
  const auto note = [](int signal) { g_signal.store(signal, std::memory_order_relaxed); };
  install(SIGTERM, note);
  install(SIGINT, ignore_sigint ? SIG_IGN : +note);
  install(SIGPIPE, SIG_IGN);
}

void throw_if_interrupted() {
  const int signal = g_signal.load(std::memory_order_relaxed);
  if (signal != 0) throw Stopped(fmt::format("stopped by {}", strsignal(signal)));
}

void end_within(unsigned seconds, int exit_code) {
  g_exit_code.store(exit_code, std::memory_order_relaxed);
  install(SIGALRM, [](int) { _exit(g_exit_code.load(std::memory_order_relaxed)); });
  alarm(seconds);
}

}  // namespace ztcp::perf
