// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/tcp_options.h"

#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "transport/wire/byte_order.h"

namespace ztcp::wire {
namespace {

std::optional<TcpOptions> parse(std::initializer_list<int> bytes) {
  std::vector<std::byte> raw;
  for (const int b : bytes) raw.push_back(std::byte(b));
  TcpOptions options;
  if (!parse_tcp_options(raw, options)) return std::nullopt;
  return options;
}

TEST(TcpOptions, SynOfALinuxPeer) {
  const auto o = parse({2, 4, 0x23, 0x00, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7});
  ASSERT_TRUE(o);
  EXPECT_EQ(o->mss_bytes, 0x2300);
  EXPECT_TRUE(o->sack_permitted);
  EXPECT_EQ(o->timestamps, (Timestamps{7, 0}));
  EXPECT_EQ(o->window_scale, 7);
}

TEST(TcpOptions, EstablishedSegmentTakesTheFastPath) {
  const auto o = parse({1, 1, 8, 10, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0});
  ASSERT_TRUE(o);
  EXPECT_EQ(o->timestamps, (Timestamps{0x12345678, 0x9abcdef0}));
  EXPECT_FALSE(o->mss_bytes);
  EXPECT_EQ(o->sack_count, 0);
}

TEST(TcpOptions, SackBlocks) {
  const auto o = parse({1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 9});
  ASSERT_TRUE(o);
  ASSERT_EQ(o->sack_count, 2);
  EXPECT_EQ(o->sack[0], (SackBlock{1, 2}));
  EXPECT_EQ(o->sack[1], (SackBlock{5, 9}));
}

TEST(TcpOptions, EcnCountersInBothOrders) {
  const EcnBytes bytes{.ect0 = 0x010203, .ce = 0x040506, .ect1 = 0x070809};
  EXPECT_EQ(parse({1, 172, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9})->ecn_bytes, bytes);
  EXPECT_EQ(parse({1, 174, 11, 7, 8, 9, 4, 5, 6, 1, 2, 3})->ecn_bytes, bytes);
  const EcnBytes only_ce{.ce = 0x040506, .is_whole = false};
  EXPECT_EQ(parse({172, 8, 1, 2, 3, 4, 5, 6})->ecn_bytes, only_ce);
  EXPECT_EQ(parse({174, 8, 7, 8, 9, 4, 5, 6})->ecn_bytes, only_ce);
}

// RFC 9768 section 3.2.3: for later extensions.
TEST(TcpOptions, EcnCountersOfOtherLengthsAreIgnored) {
  for (const int length : {2, 5, 7, 12}) {
    std::vector<std::byte> raw(static_cast<std::size_t>(length), std::byte{9});
    raw[0] = std::byte{172};
    raw[1] = static_cast<std::byte>(length);
    TcpOptions options;
    EXPECT_TRUE(parse_tcp_options(raw, options));
    EXPECT_FALSE(options.ecn_bytes);
  }
}

TEST(TcpOptions, EcnCountersTakeTheRoomThatSackBlocksLeave) {
  for (std::uint8_t blocks = 0; blocks <= 3; ++blocks) {
    TcpOptions options;
    options.timestamps = Timestamps{1, 2};
    options.sack_count = blocks;
    options.sack.fill({3, 4});
    options.ecn_bytes = EcnBytes{.ect0 = 5, .ce = 6, .ect1 = 7};
    std::array<std::byte, kMaxTcpOptionBytes> raw;
    const std::size_t size = emit_tcp_options(options, raw.data());
    EXPECT_EQ(size % 4, 0U);
    TcpOptions again;
    ASSERT_TRUE(parse_tcp_options(std::span(raw).first(size), again));
    EXPECT_EQ(again.sack_count, blocks);
    EXPECT_EQ(again.ecn_bytes.has_value(), blocks < 3);
    if (again.ecn_bytes) {
      EXPECT_EQ(again.ecn_bytes->ce, 6U);
      EXPECT_EQ(again.ecn_bytes->is_whole, blocks < 2);
    }
  }
}

TEST(TcpOptions, UnknownOptionsAreSkippedAndTheEndOptionEndsParsing) {
  const auto o = parse({254, 4, 9, 9, 30, 2, 3, 3, 2, 0, 2, 0xff, 0xff});
  ASSERT_TRUE(o);
  EXPECT_EQ(o->window_scale, 2);
  EXPECT_FALSE(o->mss_bytes);
}

TEST(TcpOptions, WindowScaleAboveFourteenCountsAsFourteen) {
  EXPECT_EQ(parse({3, 3, 15, 1})->window_scale, 14);
}

TEST(TcpOptions, WrongLengthsAreRejected) {
  EXPECT_FALSE(parse({254, 0}));                              // Would never progress.
  EXPECT_FALSE(parse({254, 1, 1, 1}));                        // Shorter than itself.
  EXPECT_FALSE(parse({2, 5, 0, 0}));                          // Past the end.
  EXPECT_FALSE(parse({2}));                                   // No length at all.
  EXPECT_FALSE(parse({2, 3, 1, 1}));                          // MSS of one byte.
  EXPECT_FALSE(parse({3, 4, 1, 1}));                          // Scale of two bytes.
  EXPECT_FALSE(parse({4, 3, 1, 1}));                          // SACK-permitted with a body.
  EXPECT_FALSE(parse({5, 2}));                                // No block.
  EXPECT_FALSE(parse({5, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));  // Not a multiple of eight.
  EXPECT_FALSE(parse({8, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));  // Timestamps cut short.
  std::vector<std::byte> five_blocks(42, std::byte{0});
  five_blocks[0] = std::byte{5};
  five_blocks[1] = std::byte{42};
  TcpOptions ignored;
  EXPECT_FALSE(parse_tcp_options(five_blocks, ignored));
}

TEST(TcpOptions, EmittedOptionsParseBack) {
  for (int mask = 0; mask < 16; ++mask) {
    for (std::uint8_t blocks = 0; blocks <= 4; ++blocks) {
      TcpOptions in;
      if ((mask & 1) != 0) in.mss_bytes = 8960;
      if ((mask & 2) != 0) in.window_scale = 9;
      in.sack_permitted = (mask & 4) != 0;
      if ((mask & 8) != 0) in.timestamps = Timestamps{11, 22};
      in.sack_count = blocks;
      for (std::uint32_t i = 0; i < blocks; ++i) in.sack[i] = {100 * i, 100 * i + 50};
      std::array<std::byte, kMaxTcpOptionBytes> raw;
      const std::size_t size = emit_tcp_options(in, raw.data());
      ASSERT_LE(size, kMaxTcpOptionBytes);
      ASSERT_EQ(size % 4, 0U);
      TcpOptions out;
      ASSERT_TRUE(parse_tcp_options(std::span(raw).first(size), out)) << mask << ' ' << int{blocks};
      EXPECT_EQ(out.mss_bytes, in.mss_bytes);
      EXPECT_EQ(out.window_scale, in.window_scale);
      EXPECT_EQ(out.sack_permitted, in.sack_permitted);
      EXPECT_EQ(out.timestamps, in.timestamps);
      ASSERT_LE(out.sack_count, blocks);
      for (std::size_t i = 0; i < out.sack_count; ++i) EXPECT_EQ(out.sack[i], in.sack[i]);
      if (mask == 8) {
        EXPECT_EQ(out.sack_count, std::min<int>(blocks, 3));
      }
      if (mask == 0) {
        EXPECT_EQ(out.sack_count, blocks);
      }
    }
  }
}

}  // namespace
}  // namespace ztcp::wire
