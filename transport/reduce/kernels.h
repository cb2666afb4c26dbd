// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reductions of whole vectors, element by element, in vector instructions chosen when they run.
// The order of the sources is the order of the operations, so the same sources give the same bits
// on every host and with every instruction set. Pointers need no alignment.
#pragma once

#include <cstddef>
#include <span>

#include "transport/reduce/element.h"

namespace ztcp::reduce {

// to[i] = from[0][i] op from[1][i] op ... for `count` elements. 16-bit floats are computed as float
// and rounded once; integers wrap around. `to` may be one of the sources; it must not overlap one
// in another way.
void combine(ElementType type, Reduction reduction, std::byte* to,
             std::span<const std::byte* const> from, std::size_t count);

// The same for the sum of bfloat16 vectors as a float vector, which is not rounded.
void sum_bfloat16_as_float(std::byte* to, std::span<const std::byte* const> from,
                           std::size_t count);

// Rounds floats to nearest even.
void narrow_to_bfloat16(std::byte* to, const std::byte* from, std::size_t count);
void widen_from_bfloat16(std::byte* to, const std::byte* from, std::size_t count);

// The instruction sets; tests compare them.
enum class Vectors : std::uint8_t { kBaseline, kAvx2, kAvx512 };
bool is_supported(Vectors vectors);
using Kernel = void (*)(std::byte* to, const std::byte* const* from, std::size_t sources,
                        std::size_t count);
Kernel kernel_of(ElementType type, Reduction reduction, Vectors vectors);

}  // namespace ztcp::reduce
