// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/failure.h"

#include <fmt/format.h>

#include "transport/link/process_limits.h"
#include "transport/ustack/poller.h"

namespace ztcp::ustack {
namespace {

// What an operator can do about it.
std::string advice(const Error& error, link::LinkState link, const Poller& poller) {
  if (link::is_lost(link)) return "; " + poller.lost_reason() + ": " + poller.lost_advice();
  if (link == link::LinkState::kDown) {
    // A link that ran into a limit of this process stays down without a word, too.
    const std::string limits = link::advice_on_files();
    return "; no carrier on " + poller.link_description() + ": " +
           (limits.empty() ? poller.carrier_advice() : limits);
  }
  switch (error.code) {
    case Errc::kTimedOut:
      return "; is the process on that host alive, and may TCP pass between the two NICs?";
    case Errc::kPathMtu:
      return "; compare mtu_bytes in both hosts' ztcp.conf with the network's: run ztcp_setup "
             "--check";
    case Errc::kProtocol:
      return "; install the same ztcp on both hosts and see that their cluster_key is equal";
    case Errc::kRefused:
      return "; the peer's process may have ended or restarted";
    case Errc::kFull:
      return "; raise max_connections in [tcp] of that host's ztcp.conf, or let NCCL open fewer "
             "connections (NCCL_NCHANNELS_PER_NET_PEER=1)";
    case Errc::kNoRoute:
      return "; compare address and gateway in both hosts' ztcp.conf";
    case Errc::kTruncated:
      return "; the ranks disagree about the size or the order of their collectives";
    default:
      return "";
  }
}

}  // namespace

std::string failure_line(const Failure& failure, Direction direction, Endpoint remote,
                         const Poller& poller) {
  const Error& error = failure.error;
  const std::string number =
      error.sys_errno != 0 ? ", errno " + std::to_string(error.sys_errno) : "";
  return fmt::format(
      "{} {} failed: {} ({}{}){}{}; {} messages ({} bytes) done, {} in flight; the NIC "
      "retransmitted {} bytes and timed out {} times{}",
      direction == Direction::kSend ? "sending to" : "receiving from", to_string(remote),
      describe(error.code), error.where, number, failure.detail.empty() ? "" : ": ", failure.detail,
      failure.messages_done, failure.bytes_done, failure.in_flight, failure.retransmitted_bytes,
      failure.rto_fired, advice(error, failure.link, poller));
}

}  // namespace ztcp::ustack
