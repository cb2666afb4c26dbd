// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/checksum.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "transport/wire/byte_order.h"

namespace ztcp::wire {
namespace {

// RFC 1071 section 1, word by word.
std::uint16_t reference_sum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto value = std::to_integer<std::uint32_t>(bytes[i]);
    sum += i % 2 == 0 ? value << 8 : value;
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(sum);
}

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> bytes(size);
  for (auto& b : bytes) b = std::byte(rng());
  return bytes;
}

TEST(Checksum, Rfc1071Example) {
  const std::uint8_t data[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  Checksum sum;
  sum.add(std::as_bytes(std::span(data)));
  EXPECT_EQ(sum.folded(), 0xddf2);
  EXPECT_EQ(sum.finish(), 0x220d);
}

TEST(Checksum, EverySizeAndAlignment) {
  const auto bytes = random_bytes(1200, 1);
  for (std::size_t offset = 0; offset < 33; ++offset) {
    for (std::size_t size = 0; size < 600; ++size) {
      const auto piece = std::span(bytes).subspan(offset, size);
      Checksum sum;
      sum.add(piece);
      ASSERT_EQ(sum.folded(), reference_sum(piece)) << offset << ' ' << size;
    }
  }
}

TEST(Checksum, ACopyHasTheSameBytesAndSum) {
  const auto bytes = random_bytes(1200, 4);
  for (std::size_t offset = 0; offset < 33; ++offset) {
    for (std::size_t size = 0; size < 600; ++size) {
      const auto piece = std::span(bytes).subspan(offset, size);
      std::vector<std::byte> to(size + 2 + offset % 7, std::byte{0xa5});
      std::byte* const at = to.data() + 1 + offset % 7;  // Aligned otherwise than the source.
      Checksum sum;
      sum.add_copy(at, piece);
      ASSERT_EQ(sum.folded(), reference_sum(piece)) << offset << ' ' << size;
      ASSERT_TRUE(std::equal(piece.begin(), piece.end(), at)) << offset << ' ' << size;
      ASSERT_EQ(at[-1], std::byte{0xa5});
      ASSERT_EQ(at[size], std::byte{0xa5});
    }
  }
}

TEST(Checksum, CopiedPiecesOfOddLengthsEqualTheWhole) {
  const auto bytes = random_bytes(9000, 5);
  std::vector<std::byte> to(bytes.size());
  std::mt19937 rng(6);
  Checksum sum;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(1 + rng() % 700, bytes.size() - at);
    sum.add_copy(to.data() + at, std::span(bytes).subspan(at, size));
    at += size;
  }
  EXPECT_EQ(sum.folded(), reference_sum(bytes));
  EXPECT_EQ(to, bytes);
}

TEST(Checksum, AllOnesDoNotOverflow) {
  const std::vector<std::byte> bytes(1U << 20, std::byte{0xff});
  Checksum sum;
  sum.add(bytes);
  EXPECT_EQ(sum.folded(), 0xffff);
  EXPECT_TRUE(sum.is_good());
}

TEST(Checksum, PiecesOfOddLengthsEqualTheWhole) {
  const auto bytes = random_bytes(9000, 2);
  std::mt19937 rng(3);
  for (int round = 0; round < 200; ++round) {
    Checksum sum;
    std::size_t at = 0;
    while (at < bytes.size()) {
      const std::size_t size = std::min<std::size_t>(1 + rng() % 700, bytes.size() - at);
      sum.add(std::span(bytes).subspan(at, size));
      at += size;
    }
    ASSERT_EQ(sum.folded(), reference_sum(bytes));
  }
}

TEST(Checksum, PseudoHeaderIsTheTwelveBytesOfTheRfc) {
  const std::uint8_t header[] = {10, 77, 1, 10, 192, 168, 255, 254, 0, 6, 0x23, 0x28};
  const Checksum sum =
      pseudo_header_checksum(Ipv4Address{0x0a4d010a}, Ipv4Address{0xc0a8fffe}, 0x2328);
  EXPECT_EQ(sum.folded(), reference_sum(std::as_bytes(std::span(header))));
}

TEST(Checksum, AnySingleBitErrorIsSeen) {
  auto bytes = random_bytes(257, 5);
  store_be16(bytes.data() + 10, 0);
  store_be16(bytes.data() + 10, internet_checksum(bytes));
  ASSERT_EQ(internet_checksum(bytes), 0);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NE(internet_checksum(bytes), 0) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace ztcp::wire
