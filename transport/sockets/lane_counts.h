// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All counters of a lane: one list for its summary line and for the statistics page.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "transport/msg/acceptor.h"
#include "transport/sockets/stream.h"
#include "transport/stats/counter_row.h"

namespace ztcp::sockets {

// A snapshot of the counters.
struct LaneCounts {
  StreamCounters streams;
  msg::AcceptorCounters acceptor;
  std::uint64_t redials = 0;
};

using LaneCounter = stats::CounterRow<LaneCounts>;

namespace lane_counter {

template <auto Member>
constexpr std::uint64_t of_streams(const LaneCounts& counts) {
  return counts.streams.*Member;
}
template <auto Member>
constexpr std::uint64_t of_acceptor(const LaneCounts& counts) {
  return counts.acceptor.*Member;
}

using Acceptor = msg::AcceptorCounters;
using stats::Counter;

// Counters that stay at or near zero in a network without faults and attacks. The summary line
// names them.
inline constexpr std::array kUnusual = {
    // Flows that this end refused are not failures.
    LaneCounter{Counter::kConnectionsFailed,
                [](const LaneCounts& counts) {
                  const std::uint64_t failed = counts.streams.failed;
                  return failed - std::min(failed, counts.acceptor.refused_gone);
                }},
    LaneCounter{Counter::kRedials, [](const LaneCounts& counts) { return counts.redials; }},
    LaneCounter{Counter::kSendBufferFull, of_streams<&StreamCounters::send_refusals>},
    LaneCounter{"refused_at_limit", Counter::kRefusedFull, of_acceptor<&Acceptor::refused_full>},
    LaneCounter{"refused_no_memory", Counter::kRefusedFull,
                of_acceptor<&Acceptor::refused_no_memory>},
    LaneCounter{"refused_flows", of_acceptor<&Acceptor::refused_flows>},
    LaneCounter{"refused_stale", of_acceptor<&Acceptor::refused_stale>},
    LaneCounter{"refused_rx_queue", of_acceptor<&Acceptor::refused_rx_queue>},
};

// The others of the statistics page. Segments that the kernel retransmits are counted here once
// their stream has ended; the page's flows tell those of living streams.
inline constexpr std::array kUsual = {
    LaneCounter{Counter::kSentBytes, of_streams<&StreamCounters::sent_bytes>},
    LaneCounter{Counter::kReceivedBytes, of_streams<&StreamCounters::received_bytes>},
    LaneCounter{Counter::kRetransmittedSegments, of_streams<&StreamCounters::retransmissions>},
    LaneCounter{Counter::kSystemCalls,
                [](const LaneCounts& counts) {
                  return counts.streams.send_calls + counts.streams.receive_calls +
                         counts.streams.queue_calls;
                }},
    LaneCounter{Counter::kWorkerCalls, of_streams<&StreamCounters::worker_calls>},
    LaneCounter{Counter::kCopiedBytes, of_streams<&StreamCounters::copied_bytes>},
};

}  // namespace lane_counter
}  // namespace ztcp::sockets
