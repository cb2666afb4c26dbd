// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/kernels.h"

#include "transport/reduce/kernel_loops.h"

namespace ztcp::reduce {
namespace {

template <class In, class Out, class Op>
void run_baseline(std::byte* to, const std::byte* const* from, std::size_t sources, Range range) {
  reduce_all<In, Out, Op>(to, from, sources, range);
}

#ifdef __x86_64__
template <class In, class Out, class Op>
[[gnu::target("avx2")]] void run_avx2(std::byte* to, const std::byte* const* from,
                                      std::size_t sources, Range range) {
  reduce_all<In, Out, Op>(to, from, sources, range);
}
template <class In, class Out, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void run_avx512(std::byte* to,
                                                                      const std::byte* const* from,
                                                                      std::size_t sources,
                                                                      Range range) {
  reduce_all<In, Out, Op>(to, from, sources, range);
}
#endif

template <class In, class Out, class Op>
Kernel kernel_for(Vectors vectors) {
#ifdef __x86_64__
  if (vectors == Vectors::kAvx512) return run_avx512<In, Out, Op>;
  if (vectors == Vectors::kAvx2) return run_avx2<In, Out, Op>;
#else
  (void)vectors;
#endif
  return run_baseline<In, Out, Op>;
}

template <class Codec>
Kernel kernel_for(Reduction reduction, Vectors vectors) {
  switch (reduction) {
    case Reduction::kSum:
      return kernel_for<Codec, Codec, Sum>(vectors);
    case Reduction::kProduct:
      return kernel_for<Codec, Codec, Product>(vectors);
    case Reduction::kMax:
      return kernel_for<Codec, Codec, Max>(vectors);
    case Reduction::kMin:
      return kernel_for<Codec, Codec, Min>(vectors);
  }
  return nullptr;
}

Vectors widest() {
  if (is_supported(Vectors::kAvx512)) return Vectors::kAvx512;
  return is_supported(Vectors::kAvx2) ? Vectors::kAvx2 : Vectors::kBaseline;
}

}  // namespace

bool is_supported([[maybe_unused]] Vectors vectors) {
#ifdef __x86_64__
  if (vectors == Vectors::kAvx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (vectors == Vectors::kAvx2) return __builtin_cpu_supports("avx2");
#endif
  return vectors == Vectors::kBaseline;
}

Kernel kernel_of(ElementType type, Reduction reduction, Vectors vectors) {
  switch (type) {
    case ElementType::kInt8:
      return kernel_for<AsIs<std::int8_t>>(reduction, vectors);
    case ElementType::kUint8:
      return kernel_for<AsIs<std::uint8_t>>(reduction, vectors);
    case ElementType::kInt32:
      return kernel_for<AsIs<std::int32_t>>(reduction, vectors);
    case ElementType::kUint32:
      return kernel_for<AsIs<std::uint32_t>>(reduction, vectors);
    case ElementType::kInt64:
      return kernel_for<AsIs<std::int64_t>>(reduction, vectors);
    case ElementType::kUint64:
      return kernel_for<AsIs<std::uint64_t>>(reduction, vectors);
    case ElementType::kFloat16:
      return kernel_for<AsFloat16>(reduction, vectors);
    case ElementType::kFloat32:
      return kernel_for<AsIs<float>>(reduction, vectors);
    case ElementType::kFloat64:
      return kernel_for<AsIs<double>>(reduction, vectors);
    case ElementType::kBfloat16:
      return kernel_for<AsBfloat16>(reduction, vectors);
  }
  return nullptr;
}

void combine(ElementType type, Reduction reduction, std::byte* to,
             std::span<const std::byte* const> from, Range range) {
  kernel_of(type, reduction, widest())(to, from.data(), from.size(), range);
}

void sum_bfloat16_as_float(std::byte* to, std::span<const std::byte* const> from, Range range) {
  kernel_for<AsBfloat16, AsIs<float>, Sum>(widest())(to, from.data(), from.size(), range);
}

void narrow_to_bfloat16(std::byte* to, const std::byte* from, Range range) {
  kernel_for<AsIs<float>, AsBfloat16, Sum>(widest())(to, &from, 1, range);
}

void widen_from_bfloat16(std::byte* to, const std::byte* from, Range range) {
  kernel_for<AsBfloat16, AsIs<float>, Sum>(widest())(to, &from, 1, range);
}

}  // namespace ztcp::reduce
