// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/stop_signal.h"

#include <csignal>
#include <initializer_list>

namespace ztcp::setup {
namespace {

volatile std::sig_atomic_t g_stop = 0;

void remember(int) { g_stop = 1; }

}  // namespace

void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
  // `| head` and `ulimit -f` must not kill set-up within a change: writing then fails with an
  // error.
  action.sa_handler = SIG_IGN;
  for (const int number : {SIGPIPE, SIGXFSZ}) ::sigaction(number, &action, nullptr);
}

bool stop_requested() { return g_stop != 0; }

}  // namespace ztcp::setup
