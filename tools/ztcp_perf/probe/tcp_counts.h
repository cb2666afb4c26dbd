// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bytes that this process's TCP connections through the kernel sent, and sent again.
#pragma once

#include <cstdint>
#include <optional>

namespace ztcp::perf::probe {

struct TcpCounts {
  std::uint64_t sent = 0;    // With those sent again.
  std::uint64_t resent = 0;  // Without those that the peer had already (RFC 2883).
};

// Counts the connections that are open now.
TcpCounts count_tcp_bytes();

// The share sent again. Absent: too little went through the kernel to carry a measurement, so the
// transport is another one.
std::optional<double> resent_share(const TcpCounts& counts);

}  // namespace ztcp::perf::probe
