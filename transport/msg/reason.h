// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reasons for refusing a flow or ending a session: a number on the wire (record.h), and a text for
// the log.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

// Wire values: never renumbered.
enum class Reason : std::uint32_t {
  kNone = 0,
  kVersion = 1,         // Another wire version. ours, theirs: the versions.
  kUnknownCookie = 2,   // No such listener: it has closed, or the handle is another process's.
  kUnknownSession = 3,  // A resume of a session that has ended.
  kStaleEpoch = 4,      // A flow that a newer one has replaced. ours, theirs: the epochs.
  kFull = 5,            // No room for another session (ours: the limit) or a further flow (0).
  kKeyMissing = 6,      // This side has a cluster key, the other has none.
  kKeyUnexpected = 7,   // This side has no cluster key, the other has one.
  kKeyMismatch = 8,     // The keys differ.
  kProtocol = 9,        // A record breaks the rules of record.h.
  kAllowance = 10,      // More bytes without a posted buffer than were allowed. ours, theirs.
  kTruncated = 11,      // A message larger than its buffer. ours: buffer, theirs: message.
  kClosed = 12,         // The receiver has closed. ours: the messages it had received by then.
  kProcessEnded = 13,   // The other side's process ended and sent this.
  kTooManyTags = 14,    // ours: the most tags of one connection.
  kOutOfMemory = 15,    // For a new session.
  // The flow came to another queue of the receiver's NIC than its session is on, or a new session
  // to a queue that has more of them than another (ours: the better queue); or the flow came by a
  // receive queue of the kernel's that serves more flows than another. A flow from another source
  // port may come to the better one.
  kOtherQueue = 16,
  kAborted = 17,  // The other side gave the session up with messages in flight.
};
inline constexpr std::uint32_t kLastReason = 17;

// The error code for the owner.
Errc to_errc(Reason reason);

// "the peer refused: wire version 2 there, 1 here"; empty for kNone. For logs: allocates.
std::string describe(const FailureDetail& detail);
// The mending step for an operator, as a clause; empty where the text itself has it, or the peer's
// own log has more.
std::string advice(const FailureDetail& detail);

}  // namespace ztcp::msg
