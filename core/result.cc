// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/result.h"

#include <cerrno>

namespace ztcp {

const char* describe(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return "the caller passed an invalid argument";
    case Errc::kBadConfig:
      return "the configuration cannot be honoured";
    case Errc::kNoDevice:
      return "no such device, or it is not ours";
    case Errc::kBusy:
      return "held by another process";
    case Errc::kOutOfMemory:
      return "out of memory";
    case Errc::kFull:
      return "every connection that the NIC may have is taken";
    case Errc::kNoRoute:
      return "no route to the peer";
    case Errc::kTimedOut:
      return "the peer stopped answering";
    case Errc::kPeerClosed:
      return "the peer ended the connection";
    case Errc::kRefused:
      return "the peer refused";
    case Errc::kProtocol:
      return "the peer broke the wire format";
    case Errc::kTruncated:
      return "message truncated: larger than the buffer posted for it";
    case Errc::kPathMtu:
      return "full-size packets do not get through; the MTU differs along the path";
    case Errc::kForked:
      return "called in a forked child, which owns no network";
    case Errc::kAborted:
      return "ended by the local user";
    case Errc::kSystem:
      return "a system call or driver failed";
  }
  return "unknown error";
}

tl::unexpected<Error> fail_errno(const char* where) { return fail(Errc::kSystem, where, errno); }

}  // namespace ztcp
