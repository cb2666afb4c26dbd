// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Another flow label for a connection over IPv6 whose path is broken or congested, so that
// switches that spread flows by it send its packets over another path: protective reroute (SIGCOMM
// 2023) and PLB (SIGCOMM 2022). docs/decisions/0021-reroute.md has the reasons.
#include "transport/tcp/connection.h"

namespace ztcp::tcp {
namespace {

// Fewer are ordinary losses, and no news.
constexpr std::uint32_t kWorthTelling = 2;

}  // namespace

void Connection::reroute(Reroute::Cause cause, std::uint32_t evidence) {
  if (!may_reroute()) return;
  ++reroutes_;
  if (is_known_to_peer()) header_.set_flow_label(flow_label());
  ++context_.counters.reroutes;
  if (has_told_reroute_ || evidence < kWorthTelling) return;
  has_told_reroute_ = true;
  context_.reroutes.add(
      {.remote = remote_, .local_port = local_port_, .cause = cause, .evidence = evidence});
}

// `timeouts`: retransmission timeouts of data in a row. They are the reason to leave the path, so
// marks do not lead back to it soon.
void Connection::reroute_after_timeout(TimePoint now, int timeouts) {
  if (!may_reroute()) return;
  reroute(Reroute::Cause::kTimeouts, static_cast<std::uint32_t>(timeouts));
  sender_.marked_rounds().on_timeout(now, MarkedRounds::kPause / (1 << 20) * flow_label());
}

// The peer repeats bytes that were acknowledged. A new flow label shows that it did so after a
// timeout, so our ACKs may not reach it; unless our own timeouts change the path already.
void Connection::reroute_after_duplicate(std::uint32_t peer_flow_label) {
  if (!may_reroute() || peer_flow_label == peer_flow_label_) return;
  peer_flow_label_ = peer_flow_label;
  if (sender_.backoff() == 0) reroute(Reroute::Cause::kDuplicates, ++duplicate_reroutes_);
}

}  // namespace ztcp::tcp
