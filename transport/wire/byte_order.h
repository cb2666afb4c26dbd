// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Network byte order: loads and stores of big-endian numbers at any alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ztcp::wire {

static_assert(std::endian::native == std::endian::little, "the codecs swap unconditionally");

inline std::uint8_t load_u8(const std::byte* p) noexcept {
  return std::to_integer<std::uint8_t>(*p);
}

inline std::uint16_t load_be16(const std::byte* p) noexcept {
  std::uint16_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap16(v);
}

inline std::uint32_t load_be32(const std::byte* p) noexcept {
  std::uint32_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap32(v);
}

inline std::uint64_t load_be64(const std::byte* p) noexcept {
  std::uint64_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap64(v);
}

inline void store_u8(std::byte* p, std::uint8_t v) noexcept { *p = std::byte{v}; }

inline void store_be16(std::byte* p, std::uint16_t v) noexcept {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, sizeof v);
}

inline void store_be32(std::byte* p, std::uint32_t v) noexcept {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}

inline void store_be64(std::byte* p, std::uint64_t v) noexcept {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, sizeof v);
}

}  // namespace ztcp::wire
