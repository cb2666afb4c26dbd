// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/kernels.h"

#include "transport/reduce/kernel_loops.h"
#include "transport/reduce/vector_targets.h"

namespace ztcp::reduce {
namespace {

template <class In, class Out, class Op>
struct ReduceAll {
  [[gnu::always_inline]] static void run(std::byte* to, const std::byte* const* from,
                                         std::size_t sources, Range range) {
    reduce_all<In, Out, Op>(to, from, sources, range);
  }
};

template <class Codec>
Kernel kernel_of_codec(Reduction reduction, Vectors vectors) {
  switch (reduction) {
    case Reduction::kSum:
      return kernel_for<ReduceAll<Codec, Codec, Sum>>(vectors);
    case Reduction::kProduct:
      return kernel_for<ReduceAll<Codec, Codec, Product>>(vectors);
    case Reduction::kMax:
      return kernel_for<ReduceAll<Codec, Codec, Max>>(vectors);
    case Reduction::kMin:
      return kernel_for<ReduceAll<Codec, Codec, Min>>(vectors);
  }
  return nullptr;
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

Vectors widest() {
  if (is_supported(Vectors::kAvx512)) return Vectors::kAvx512;
  return is_supported(Vectors::kAvx2) ? Vectors::kAvx2 : Vectors::kBaseline;
}

Kernel kernel_of(ElementType type, Reduction reduction, Vectors vectors) {
  switch (type) {
    case ElementType::kInt8:
      return kernel_of_codec<AsIs<std::int8_t>>(reduction, vectors);
    case ElementType::kUint8:
      return kernel_of_codec<AsIs<std::uint8_t>>(reduction, vectors);
    case ElementType::kInt32:
      return kernel_of_codec<AsIs<std::int32_t>>(reduction, vectors);
    case ElementType::kUint32:
      return kernel_of_codec<AsIs<std::uint32_t>>(reduction, vectors);
    case ElementType::kInt64:
      return kernel_of_codec<AsIs<std::int64_t>>(reduction, vectors);
    case ElementType::kUint64:
      return kernel_of_codec<AsIs<std::uint64_t>>(reduction, vectors);
    case ElementType::kFloat16:
      return kernel_of_codec<AsFloat16>(reduction, vectors);
    case ElementType::kFloat32:
      return kernel_of_codec<AsIs<float>>(reduction, vectors);
    case ElementType::kFloat64:
      return kernel_of_codec<AsIs<double>>(reduction, vectors);
    case ElementType::kBfloat16:
      return kernel_of_codec<AsBfloat16>(reduction, vectors);
  }
  return nullptr;
}

void combine(ElementType type, Reduction reduction, std::byte* to,
             std::span<const std::byte* const> from, Range range) {
  kernel_of(type, reduction, widest())(to, from.data(), from.size(), range);
}

void sum_bfloat16_as_float(std::byte* to, std::span<const std::byte* const> from, Range range) {
  kernel_for<ReduceAll<AsBfloat16, AsIs<float>, Sum>>(widest())(to, from.data(), from.size(),
                                                                range);
}

void narrow_to_bfloat16(std::byte* to, const std::byte* from, Range range) {
  kernel_for<ReduceAll<AsIs<float>, AsBfloat16, Sum>>(widest())(to, &from, 1, range);
}

void widen_from_bfloat16(std::byte* to, const std::byte* from, Range range) {
  kernel_for<ReduceAll<AsBfloat16, AsIs<float>, Sum>>(widest())(to, &from, 1, range);
}

}  // namespace ztcp::reduce
