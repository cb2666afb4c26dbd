// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The only boundary between NCCL and the plugin. Every function in an ABI table calls guard(), so
// no exception crosses it, no failure goes unreported, and a forked child touches nothing: guard()
// asks once for each call, and behind it only destructors and close() ask again. Only the end of
// the calling thread (pthread_exit(), pthread_cancel()) unwinds through it.
#pragma once

#include <cxxabi.h>

#include "core/process_mark.h"
#include "plugin/abi/nccl_abi.h"
#include "plugin/report.h"

namespace ztcp::plugin {

// The result that NCCL, and through it the application, sees. A dead peer must read as
// ncclRemoteError.
ncclResult_t to_nccl(Errc code) noexcept;

// Reports the exception in flight and the entry point it came from. Call inside a handler.
ncclResult_t report_exception(const char* entry);

// `body` returns Told<void>.
template <class Body>
ncclResult_t guard(const char* entry, Body&& body) {
  // No warning: NCCL's logger may hold a lock that was taken when the child was forked.
  if (in_forked_child()) [[unlikely]]
    return ncclSystemError;
  try {
    const Told<void> outcome = body();
    if (outcome) [[likely]]
      return ncclSuccess;
    return to_nccl(outcome.error().code());
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return report_exception(entry);
  }
}

}  // namespace ztcp::plugin
