// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A small message back and forth over one connection.
#pragma once

#include <cstdint>

#include "bench/reference/carriers.h"

namespace ztcp::bench {

// How a thread waits for the answer: by polling, or asleep in the kernel.
enum class Waiting : std::uint8_t { kAwake, kAsleep };

// Microseconds of half a round trip of 8 bytes, between two threads.
double ping_us(Way way, Waiting waiting, double seconds);

}  // namespace ztcp::bench
