// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What one connection tells of itself, for tools and for lines about failures: a value, filled in
// when somebody asks. What is counted for it on the way is counted where something rare happens,
// but for the bytes that arrive in order.
#pragma once

#include <cstdint>

#include "transport/core/address.h"
#include "transport/core/clock.h"

namespace ztcp::tcp {

struct ConnectionStatistics {
  const char* state = "";  // By RFC 9293's name: "ESTABLISHED".
  Endpoint local;
  Endpoint remote;
  TimePoint opened{};
  TimePoint heard{};  // When the last acceptable segment came.

  Duration srtt{};  // Zero: no sample yet.
  Duration rttvar{};
  Duration rto{};
  std::uint32_t mss_bytes = 0;
  std::uint32_t cwnd_bytes = 0;
  std::uint32_t ssthresh_bytes = 0;
  std::uint32_t peer_window_bytes = 0;
  std::uint32_t in_flight_bytes = 0;   // Sent, and neither acknowledged, SACKed nor lost.
  std::uint64_t send_queue_bytes = 0;  // Written by the user and not acknowledged.

  std::uint64_t sent_bytes = 0;  // First transmissions.
  std::uint64_t acked_bytes = 0;
  std::uint64_t retransmitted_bytes = 0;
  std::uint64_t received_bytes = 0;  // In order, handed up.
  std::uint32_t timeouts = 0;
  std::uint32_t fast_recoveries = 0;
  std::uint32_t spurious_recoveries = 0;  // Of the two above.
  std::uint32_t tail_probes = 0;
  std::uint32_t zero_windows = 0;  // How often the peer shut its window.
  std::uint32_t out_of_order_segments = 0;
  std::uint32_t duplicate_segments = 0;
};

}  // namespace ztcp::tcp
