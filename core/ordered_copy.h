// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The one routine that writes received bytes into memory that is polled while it is written.
//
// NCCL's LL and LL128 protocols put flags inside the data: every 16-byte line ends its halves with
// one, every 128-byte line its last 8 bytes. The GPU reads a line and, if the flag is set, takes
// the data for complete. So bytes must become visible in ascending order. memcpy does not promise
// that and does not do it: glibc writes the tail first for some sizes and uses `rep movsb` for
// others; rte_memcpy overlaps its stores.
//
// Stores here strictly ascend, are naturally aligned, touch every byte once, and are never
// non-temporal. The loads may come in any order.
//
// x86 makes stores visible in program order. On aarch64 the words of 8 bytes become visible whole
// but in any order, except that the last word of each aligned line of 128 bytes, and each store of
// less than a word, comes after all bytes before it. That is what the two protocols need.
#pragma once

#include <cstddef>

namespace ztcp {

// The regions must not overlap.
void ordered_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) noexcept;

}  // namespace ztcp
