// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/failure.h"

#include <chrono>

#include <fmt/format.h>

#include "core/failure_sentence.h"
#include "transport/comms/backend.h"
#include "transport/msg/reason.h"

namespace ztcp::comms {
namespace {

// Advice for an operator, or nothing.
std::string advice(const Failure& failure, const Backend& backend) {
  const LinkState link = failure.link;
  if (is_lost(link)) return backend.lost_reason() + ": " + backend.lost_advice();
  if (link == LinkState::kDown) return backend.down_advice();
  // One of the two ends gave its reason: advice by the error code alone would not fit.
  if (failure.session.reason != msg::Reason::kNone) return msg::advice(failure.session);
  const Errc code = failure.error.code;
  if (const std::string own = backend.advice_for(code); !own.empty()) return own;
  switch (code) {
    case Errc::kTimedOut:
      return "is the process on that host alive, and may TCP pass between the two NICs?";
    case Errc::kPathMtu:
      return "compare mtu_bytes in both hosts' ztcp.conf with the network's: run ztcp_setup "
             "--check";
    case Errc::kProtocol:
      return "install the same ztcp on both hosts and see that their cluster_key is equal";
    case Errc::kRefused:
      return "the peer's process may have ended or restarted; if it lives, see that its host's "
             "firewall does not answer for it (reject with tcp reset)";
    case Errc::kFull:
      return msg::advice({msg::Reason::kFull});
    case Errc::kNoRoute:
      return "compare address and gateway in both hosts' ztcp.conf, and see that no firewall "
             "rejects TCP between the two, in either direction";
    case Errc::kTruncated:
      return "the ranks disagree about the size or the order of their collectives";
    default:
      return "";
  }
}

// Advice on a peer that was never reached: no message was completed.
std::string route_advice(const Failure& failure, IpAddress remote, const Backend& backend) {
  const Errc code = failure.error.code;
  const bool is_unreached = code == Errc::kTimedOut || code == Errc::kRefused ||
                            code == Errc::kNoRoute || code == Errc::kProtocol;
  return is_unreached && failure.messages_done == 0 ? backend.route_advice(remote) : std::string();
}

// "the peer was last heard 7501 ms before, ..."; empty where no stream has a measurement.
std::string health_text(const Failure& failure, Direction direction) {
  const StreamHealth& health = failure.health;
  if (health.heard == TimePoint{} && health.srtt == Duration::zero()) return {};
  using std::chrono::duration_cast;
  std::string text;
  if (health.heard != TimePoint{})
    text +=
        fmt::format("the peer was last heard {} ms before, ",
                    duration_cast<std::chrono::milliseconds>(failure.at - health.heard).count());
  text += fmt::format("round trip {} us",
                      duration_cast<std::chrono::microseconds>(health.srtt).count());
  if (direction == Direction::kSend)
    text += fmt::format(", {} bytes unacknowledged of a window of {}", health.unacked_bytes,
                        health.cwnd_bytes);
  text += fmt::format(", {} bytes retransmitted", health.retransmitted_bytes);
  if (health.timeouts != 0) text += fmt::format(", {} timeouts", health.timeouts);
  return text;
}

}  // namespace

std::string failure_line(const Failure& failure, Direction direction, Endpoint remote,
                         const Backend& backend) {
  // A reason that one of the two ends gave stands for the error.
  const bool has_reason = failure.detail.empty() && failure.session.reason != msg::Reason::kNone;
  return to_string({.direction = direction,
                    .remote = remote,
                    .over = {},
                    .error = failure.error,
                    .reason = has_reason ? msg::describe(failure.session) : std::string(),
                    .detail = failure.detail,
                    .messages_done = failure.messages_done,
                    .bytes_done = failure.bytes_done,
                    .in_flight = failure.in_flight,
                    .more = {health_text(failure, direction), advice(failure, backend),
                             route_advice(failure, remote.address, backend)}});
}

}  // namespace ztcp::comms
