// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The only door between NCCL and us. Every function in an ABI table is a call of guard(), so no
// exception crosses it, no failure leaves unsaid, and a forked child touches nothing. Only the end
// of the calling thread (pthread_exit(), pthread_cancel()) unwinds through it.
#pragma once

#include <cxxabi.h>

#include "plugin/abi/nccl_abi.h"
#include "plugin/report.h"
#include "transport/core/process_mark.h"

namespace ztcp::plugin {

// What NCCL, and through it the application, is told. A dead peer must read as ncclRemoteError.
ncclResult_t to_nccl(Errc code) noexcept;

// Says which exception is in flight and which entry point let it out. Call inside a handler.
ncclResult_t report_exception(const char* entry);

// `body` returns Told<void>.
template <class Body>
ncclResult_t guard(const char* entry, Body&& body) {
  // Silently: NCCL's logger may hold a lock that was taken when the child was forked.
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
