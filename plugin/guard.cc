// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/guard.h"

#include <exception>
#include <new>
#include <sys/resource.h>

namespace ztcp::plugin {

ncclResult_t to_nccl(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalidArgument:
      return ncclInvalidArgument;
    case Errc::kTruncated:  // The application's mistake: the ranks disagree about a collective.
      return ncclInvalidUsage;
    case Errc::kTimedOut:
    case Errc::kPeerClosed:
    case Errc::kRefused:
    case Errc::kProtocol:
      return ncclRemoteError;
    case Errc::kBadConfig:
    case Errc::kNoDevice:
    case Errc::kBusy:
    case Errc::kOutOfMemory:
    case Errc::kFull:
    case Errc::kNoRoute:
    case Errc::kPathMtu:
    case Errc::kForked:
    case Errc::kAborted:
    case Errc::kSystem:
      return ncclSystemError;
  }
  return ncclInternalError;
}

ncclResult_t report_exception(const char* entry) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    rlimit addresses{};
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
      log::warn("{}: out of memory; lift ulimit -v: this process may have {} MiB of addresses",
                entry, addresses.rlim_cur >> 20U);
    else
      log::warn("{}: out of memory", entry);
    return ncclSystemError;
  } catch (const std::exception& e) {
    log::warn("{}: unexpected exception: {}", entry, e.what());
    return ncclInternalError;
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {
    log::warn("{}: unknown exception", entry);
    return ncclInternalError;
  }
}

}  // namespace ztcp::plugin
