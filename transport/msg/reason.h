// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Why one side refuses a flow or ends a session, as a number that travels (record.h) and as text
// for the log.
#pragma once

#include <cstdint>
#include <string>

#include "transport/core/result.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

// Wire values: never renumbered.
enum class Reason : std::uint32_t {
  kNone = 0,
  kVersion = 1,         // Another wire version. ours, theirs: the versions.
  kUnknownCookie = 2,   // No such listener: it is gone, or the handle is another process's.
  kUnknownSession = 3,  // A resume of a session that is no more.
  kStaleEpoch = 4,      // A flow that a newer one has replaced. ours, theirs: the epochs.
  kFull = 5,            // No room for another session (ours: the limit) or a further flow (0).
  kKeyMissing = 6,      // This side has a cluster key, the other came without.
  kKeyUnexpected = 7,   // This side has no cluster key, the other wants one.
  kKeyMismatch = 8,     // The keys differ.
  kProtocol = 9,        // A record breaks the rules of record.h.
  kAllowance = 10,      // More bytes without a posted buffer than were allowed. ours, theirs.
  kTruncated = 11,      // A message larger than its buffer. ours: buffer, theirs: message.
  kClosed = 12,         // The receiver has closed. ours: the messages it had received by then.
  kProcessEnded = 13,   // The other side's process ended and said so.
  kTooManyTags = 14,    // ours: so many there may be on one connection.
  kOutOfMemory = 15,    // A new session found none.
  // The flow came to another queue of the receiver's NIC than its session is on, or a new session
  // to one that has more of them than another (ours: which); or by a receive queue of its kernel's
  // that serves more flows than another. A flow from another port may come to that one.
  kOtherQueue = 16,
  kAborted = 17,  // The other side gave the session up with messages under way.
};
inline constexpr std::uint32_t kLastReason = 17;

// What an owner is told besides.
Errc to_errc(Reason reason);

// "the peer refused: wire version 2 there, 1 here"; empty for kNone. For logs: allocates.
std::string describe(const FailureDetail& detail);
// What an operator does about it, beginning with "; "; empty where that stands in the text, or the
// peer's own log has more.
std::string advice(const FailureDetail& detail);

}  // namespace ztcp::msg
