// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The elements that can be reduced, the reductions, the forms in which they travel, and ranges of
// elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ztcp::reduce {

enum class ElementType : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
};

enum class Reduction : std::uint8_t { kSum, kProduct, kMax, kMin };

// The form in which large sums travel: as they are, of 32-bit floats as bfloat16, or of floats of
// 16 and 32 bits as blocks of 8-bit floats (block_float.h). Other types and reductions travel as
// they are.
enum class Wire : std::uint8_t { kAsIs, kBfloat16, kFloat8 };

struct Range {
  std::size_t begin = 0;
  std::size_t count = 0;
};

constexpr std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kUint8:
      return 1;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kUint32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kInt64:
    case ElementType::kUint64:
    case ElementType::kFloat64:
      return 8;
  }
  return 1;
}

}  // namespace ztcp::reduce
