// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A message counted in units (see record.h) and the set of units that are held. Fixed size for any
// message: 1024 bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ztcp::msg {

inline constexpr std::uint32_t kMinUnitShift = 12;  // 4096 bytes.
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 40;

// Unit size of a message of a given size. A value computed alike on both sides.
class UnitSize {
 public:
  static constexpr std::uint64_t kMaxUnits = 1024;

  UnitSize() = default;  // Invalid before it is assigned.
  constexpr explicit UnitSize(std::uint64_t total_bytes)
      : shift_(std::max(kMinUnitShift, total_bytes == 0 ? 0U : bits(total_bytes - 1) - 10U)) {}

  constexpr std::uint64_t bytes() const { return std::uint64_t{1} << shift_; }
  constexpr std::uint64_t index(std::uint64_t offset) const { return offset >> shift_; }
  constexpr std::uint64_t offset(std::uint64_t unit) const { return unit << shift_; }
  constexpr bool is_aligned(std::uint64_t offset) const { return (offset & (bytes() - 1)) == 0; }
  // Units that cover `total_bytes`: at most 1024.
  constexpr std::uint64_t count(std::uint64_t total_bytes) const {
    return (total_bytes + bytes() - 1) >> shift_;
  }

 private:
  static constexpr std::uint32_t bits(std::uint64_t n) {
    return std::max(10U, static_cast<std::uint32_t>(std::bit_width(n)));
  }
  std::uint32_t shift_;
};
static_assert(UnitSize(4U << 20).bytes() == 4096 && UnitSize((4U << 20) + 1).bytes() == 8192);
static_assert(UnitSize(4U << 20).count(4U << 20) == 1024);
static_assert(UnitSize(kMaxMessageBytes).count(kMaxMessageBytes) == 1024);

// A map declared without an initialiser has undefined bits before clear_first().
class ChunkMap {
 public:
  static constexpr std::size_t kMaxUnits = UnitSize::kMaxUnits;
  static constexpr std::size_t kWords = kMaxUnits / 64;

  // Clears the units of the map's message; other units are never read.
  void clear_first(std::uint64_t units) {
    std::fill_n(words_.begin(), static_cast<std::size_t>((units + 63) / 64), 0);
  }
  void set(std::uint64_t unit) { words_[unit / 64] |= std::uint64_t{1} << (unit % 64); }
  bool test(std::uint64_t unit) const { return (words_[unit / 64] >> (unit % 64) & 1) != 0; }
  // For units [first, last): the number of set ones, or of newly set ones.
  std::uint64_t count(std::uint64_t first, std::uint64_t last) const;
  std::uint64_t set(std::uint64_t first, std::uint64_t last);

  std::uint64_t word(std::size_t index) const { return words_[index]; }
  void set_word(std::size_t index, std::uint64_t value) { words_[index] = value; }
  friend bool operator==(const ChunkMap&, const ChunkMap&) = default;

 private:
  std::array<std::uint64_t, kWords> words_;
};

}  // namespace ztcp::msg
