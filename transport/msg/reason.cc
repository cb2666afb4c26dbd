// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/reason.h"

namespace ztcp::msg {

Errc to_errc(Reason reason) {
  switch (reason) {
    case Reason::kVersion:
    case Reason::kProtocol:
    case Reason::kAllowance:
      return Errc::kProtocol;
    case Reason::kTruncated:
      return Errc::kTruncated;
    case Reason::kClosed:
    case Reason::kProcessEnded:
    case Reason::kUnknownSession:
    case Reason::kAborted:
      return Errc::kPeerClosed;
    case Reason::kFull:
      return Errc::kFull;
    case Reason::kTooManyTags:
      return Errc::kInvalidArgument;
    case Reason::kOutOfMemory:
      return Errc::kOutOfMemory;
    case Reason::kNone:
    case Reason::kUnknownCookie:
    case Reason::kStaleEpoch:
    case Reason::kKeyMissing:
    case Reason::kKeyUnexpected:
    case Reason::kKeyMismatch:
    case Reason::kOtherQueue:
      break;
  }
  return Errc::kRefused;
}

std::string describe(const FailureDetail& detail) {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  // In the record, `ours` is the number of the side that refused. The text says "here" and "there"
  // from the reader's side.
  const std::string decider = detail.from_peer ? "there" : "here";
  const std::string other = detail.from_peer ? "here" : "there";
  std::string text;
  switch (detail.reason) {
    case Reason::kNone:
      return {};
    case Reason::kVersion:
      text = "wire version " + number(detail.ours) + " " + decider + ", " + number(detail.theirs) +
             " " + other + ": install the same ztcp on both hosts";
      break;
    case Reason::kUnknownCookie:
      text = "no such listener: its process has ended, or closed it";
      break;
    case Reason::kUnknownSession:
      text = "no such session: its process closed or aborted it";
      break;
    case Reason::kStaleEpoch:
      text = "flow epoch " + number(detail.theirs) + " is not newer than " + number(detail.ours);
      break;
    case Reason::kFull:
      text = "connection limit of its NIC reached: " + number(detail.ours);
      break;
    case Reason::kKeyMissing:
      text = "a cluster key is set " + decider + " but not " + other;
      break;
    case Reason::kKeyUnexpected:
      text = "a cluster key is set " + other + " but not " + decider;
      break;
    case Reason::kKeyMismatch:
      text = "the cluster keys of the two hosts differ";
      break;
    case Reason::kProtocol:
      text = "a record violates the wire format";
      break;
    case Reason::kAllowance:
      text = "more bytes without a posted buffer than allowed: " + number(detail.theirs) + " of " +
             number(detail.ours);
      break;
    case Reason::kTruncated:
      text = "a message of " + number(detail.theirs) + " bytes does not fit the posted buffer of " +
             number(detail.ours);
      break;
    case Reason::kClosed:
      text = "the receiver closed with messages outstanding";
      break;
    case Reason::kTooManyTags:
      text =
          "more than " + number(detail.ours) +
          " tags on one connection: set NCCL_NET_SHARED_COMMS=0 and NCCL_OOB_NET_ENABLE=0 on all "
          "hosts";
      break;
    case Reason::kOutOfMemory:
      text =
          "its process has no memory left for another connection: raise its limit (ulimit -v, "
          "the job's memory)";
      break;
    case Reason::kOtherQueue:
      text = "the connection belongs to queue " + number(detail.ours) +
             " of its NIC, which no source port tried has reached";
      break;
    case Reason::kProcessEnded:
      return "the peer's process ended without closing the connection";
    case Reason::kAborted:
      return "the peer aborted the connection";
  }
  return detail.from_peer ? "the peer refused: " + text : text;
}

std::string advice(const FailureDetail& detail) {
  switch (detail.reason) {
    case Reason::kUnknownCookie:
    case Reason::kUnknownSession:
      return "look at that rank's own output: it ended first";
    case Reason::kAborted:
      return "look at that rank's own output: it failed or was aborted first";
    case Reason::kFull:
      if (detail.ours >= kMostSessions)
        return "let NCCL open fewer connections on all hosts (NCCL_NCHANNELS_PER_NET_PEER=1)";
      return "raise max_connections in [tcp] of that host's ztcp.conf (up to " +
             std::to_string(kMostSessions) +
             "), or let NCCL open fewer connections on all hosts (NCCL_NCHANNELS_PER_NET_PEER=1)";
    case Reason::kKeyMissing:
    case Reason::kKeyUnexpected:
    case Reason::kKeyMismatch:
      return "write the same messages.cluster_key into both hosts' ztcp.conf (openssl rand -hex "
             "32)";
    case Reason::kProtocol:
    case Reason::kAllowance:
      return "install the same ztcp on both hosts";
    case Reason::kTruncated:
      return "the ranks disagree about the size or the order of their collectives";
    case Reason::kNone:
    case Reason::kVersion:
    case Reason::kStaleEpoch:
    case Reason::kClosed:
    case Reason::kProcessEnded:
    case Reason::kTooManyTags:
    case Reason::kOutOfMemory:
    case Reason::kOtherQueue:
      break;
  }
  return {};
}

}  // namespace ztcp::msg
