// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What several shards of a NIC carry: each is a thread with engines of its own, and the connections
// are dealt out to them, as a NIC's are.
#pragma once

#include <cstddef>

namespace ztcp::bench {

struct ShardsSample {
  bool is_intact = false;
  double goodput_gbps = 0;  // Of all shards together, in real time.
  double memcpy_gbps = 0;   // Of as many threads that copy the same buffers: the memory's limit.
};

// `connections` of MTU 9000, offloaded, with a working set of 256 MiB in all, over so many shards.
// Both ends of a connection are one thread's turn by turn. Medians of `repetitions`.
ShardsSample measure_shards(std::size_t shards, std::size_t connections, int repetitions);

}  // namespace ztcp::bench
