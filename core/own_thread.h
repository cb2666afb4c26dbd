// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Starts a thread of ours in the host's process: with a name, and with all signals blocked, so that
// none of the host's handlers ever runs on it.
#pragma once

#include <csignal>
#include <new>
#include <pthread.h>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/result.h"

namespace ztcp {

// `name`: at most 15 bytes, or the kernel keeps the old name.
template <class Run>
Result<std::thread> start_thread(const std::string& name, Run&& run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (const int rc = pthread_sigmask(SIG_SETMASK, &all, &before); rc != 0)
    return fail(Errc::kSystem, "pthread_sigmask", rc);
  Result<std::thread> started;
  try {
    started = std::thread(std::forward<Run>(run));  // Inherits the mask.
    pthread_setname_np(started->native_handle(), name.c_str());
  } catch (const std::system_error& error) {
    started = fail(Errc::kSystem, "pthread_create", error.code().value());
  } catch (const std::bad_alloc&) {
    started = fail(Errc::kOutOfMemory, "std::thread");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace ztcp
