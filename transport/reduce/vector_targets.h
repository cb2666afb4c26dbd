// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compiles a loop once for each instruction set. `Loop::run` must be inlined, with all that it
// calls, so that it is compiled for the set of the function around it.
#pragma once

#include <cstddef>

#include "transport/reduce/kernels.h"

namespace ztcp::reduce {

template <class Loop>
void run_baseline(std::byte* to, const std::byte* const* from, std::size_t sources, Range range) {
  Loop::run(to, from, sources, range);
}

#ifdef __x86_64__
template <class Loop>
[[gnu::target("avx2")]] void run_avx2(std::byte* to, const std::byte* const* from,
                                      std::size_t sources, Range range) {
  Loop::run(to, from, sources, range);
}
template <class Loop>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void run_avx512(std::byte* to,
                                                                      const std::byte* const* from,
                                                                      std::size_t sources,
                                                                      Range range) {
  Loop::run(to, from, sources, range);
}
#endif

template <class Loop>
Kernel kernel_for(Vectors vectors) {
#ifdef __x86_64__
  if (vectors == Vectors::kAvx512) return run_avx512<Loop>;
  if (vectors == Vectors::kAvx2) return run_avx2<Loop>;
#else
  (void)vectors;
#endif
  return run_baseline<Loop>;
}

}  // namespace ztcp::reduce
