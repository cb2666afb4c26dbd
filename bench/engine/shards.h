// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The throughput of several shards of a NIC: each is a thread with its own engines, and the
// connections are distributed over them, as a NIC's are.
#pragma once

#include <cstddef>

namespace ztcp::bench {

struct ShardsSample {
  bool is_intact = false;
  double goodput_gbps = 0;  // All shards together, in real time.
  double memcpy_gbps = 0;   // As many threads copying the same buffers: the memory's limit.
};

// `connections` of MTU 9000, offloaded, with a working set of 256 MiB in all, over so many shards.
// One thread runs both ends of a connection in turns. Medians of `repetitions`.
ShardsSample measure_shards(std::size_t shards, std::size_t connections, int repetitions);

}  // namespace ztcp::bench
