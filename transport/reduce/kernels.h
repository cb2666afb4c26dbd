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

// to[i] = from[0][i] op from[1][i] op ... for the elements i of `range`. 16-bit floats are computed
// as float and rounded once; integers wrap around. `to` may be one of the sources; it must not
// overlap one in another way.
void combine(ElementType type, Reduction reduction, std::byte* to,
             std::span<const std::byte* const> from, Range range);

// The same for the sum of bfloat16 vectors as a float vector, which is not rounded. `to` must not
// overlap a source; likewise below.
void sum_bfloat16_as_float(std::byte* to, std::span<const std::byte* const> from, Range range);

// Rounds floats to nearest even.
void narrow_to_bfloat16(std::byte* to, const std::byte* from, Range range);
void widen_from_bfloat16(std::byte* to, const std::byte* from, Range range);

// The instruction sets; tests compare them.
enum class Vectors : std::uint8_t { kBaseline, kAvx2, kAvx512 };
bool is_supported(Vectors vectors);
Vectors widest();  // The widest that is supported.
using Kernel = void (*)(std::byte* to, const std::byte* const* from, std::size_t sources,
                        Range range);
Kernel kernel_of(ElementType type, Reduction reduction, Vectors vectors);

}  // namespace ztcp::reduce
