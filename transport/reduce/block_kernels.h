// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Vectors in blocks of 8-bit floats (block_float.h): from floats of 16 or 32 bits, added, and back,
// with the same bits on every host and with every instruction set. A range begins at a whole block,
// and ends at one or with the vector. Pointers are those of element 0 and need no alignment.
#pragma once

#include <cstddef>
#include <span>

#include "transport/reduce/element.h"
#include "transport/reduce/kernels.h"

namespace ztcp::reduce {

// Sums of these types can travel in blocks: the floats of 16 and 32 bits.
constexpr bool has_blocks(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kFloat16 ||
         type == ElementType::kBfloat16;
}

// Rounds to nearest even. `to` must not overlap `from`; likewise below, but for sum_blocks().
void narrow_to_blocks(ElementType type, std::byte* to, const std::byte* from, Range range);

// The sum of blocks as values of `type`. It is computed as float, so 16-bit floats are rounded
// once. With one source: the widened blocks.
void sum_of_blocks(ElementType type, std::byte* to, std::span<const std::byte* const> from,
                   Range range);

// The sum of blocks as blocks, computed as float and rounded once. `to` may be a source.
void sum_blocks(std::byte* to, std::span<const std::byte* const> from, Range range);

// By instruction set; tests compare them.
enum class BlockWork : std::uint8_t { kNarrow, kSum, kSumAsBlocks };
// `type` counts for the first two. Null: it has no blocks.
Kernel block_kernel(BlockWork work, ElementType type, Vectors vectors);

}  // namespace ztcp::reduce
