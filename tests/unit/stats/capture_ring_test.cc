// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/capture_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

std::vector<std::byte> numbered(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i);
  return bytes;
}

struct CaptureRingTest : testing::Test {
  static constexpr std::size_t kRing = 4096;

  explicit CaptureRingTest(std::uint32_t snap_bytes = 0)
      : writer(state, ring, cursor, snap_bytes), reader(state, ring, cursor) {}

  static void put(CaptureWriter& to, std::span<const std::byte> bytes, std::uint64_t time_ns) {
    CaptureRecord record;
    record.time_ns = time_ns;
    record.original_bytes = static_cast<std::uint32_t>(bytes.size());
    to.write(record, [&](auto&& piece) {
      const std::size_t half = bytes.size() / 2;
      piece(bytes.data(), half);
      piece(bytes.data() + half, bytes.size() - half);
    });
  }
  void put(std::span<const std::byte> bytes, std::uint64_t time_ns) { put(writer, bytes, time_ns); }
  const CaptureReader::Frame* peek() {
    const auto frame = reader.peek(reader.written_bytes());
    EXPECT_TRUE(frame);
    return frame ? *frame : nullptr;
  }

  CaptureLaneState state;
  std::vector<std::byte> ring = std::vector<std::byte>(kRing);
  CaptureCursor cursor;
  CaptureWriter writer;
  CaptureReader reader;
};

TEST_F(CaptureRingTest, FramesComeInOrderWithTheirBytesAlsoAroundTheEnd) {
  std::minstd_rand random(7);
  for (std::uint64_t round = 0; round < 2000; ++round) {
    const auto bytes = numbered(random() % 1500, round);
    put(bytes, round);
    const CaptureReader::Frame* const frame = peek();
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->record.time_ns, round);
    EXPECT_EQ(frame->record.original_bytes, bytes.size());
    EXPECT_EQ(frame->record.lost_before, 0U);
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), frame->bytes.begin(), frame->bytes.end()));
    reader.pop();
    ASSERT_EQ(peek(), nullptr);
  }
  EXPECT_EQ(reader.recorded(), 2000U);
  EXPECT_EQ(reader.lost(), 0U);
}

TEST_F(CaptureRingTest, FullRingLosesNewFramesAndCountsThem) {
  const auto bytes = numbered(1000, 1);  // Four with their headers fill the ring.
  for (std::uint64_t i = 0; i < 10; ++i) put(bytes, i);
  EXPECT_EQ(reader.recorded(), 4U);
  EXPECT_EQ(reader.lost(), 6U);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_NE(peek(), nullptr);
    EXPECT_EQ(peek()->record.time_ns, i);
    reader.pop();
  }
  ASSERT_EQ(peek(), nullptr);
  put(bytes, 10);
  put(bytes, 11);
  EXPECT_EQ(peek()->record.lost_before, 6U);
  reader.pop();
  EXPECT_EQ(peek()->record.lost_before, 0U);
}

struct SnapTest : CaptureRingTest {
  SnapTest() : CaptureRingTest(64) {}
};

TEST_F(SnapTest, LongFramesAreCutAndTellTheirSize) {
  const auto bytes = numbered(1000, 3);
  put(bytes, 0);
  const CaptureReader::Frame* const frame = peek();
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->record.original_bytes, 1000U);
  EXPECT_TRUE(
      std::equal(frame->bytes.begin(), frame->bytes.end(), bytes.begin(), bytes.begin() + 64));
}

TEST_F(CaptureRingTest, WrongCursorCostsFramesOnly) {
  const auto bytes = numbered(1000, 1);
  for (int i = 0; i < 4; ++i) put(bytes, 0);
  for (const std::uint64_t head :
       {std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{4097}}) {
    cursor.head_bytes = head;
    put(bytes, 0);
  }
  EXPECT_EQ(reader.lost(), 3U);
  EXPECT_EQ(reader.recorded(), 4U);
}

TEST_F(CaptureRingTest, ReaderRefusesImpossibleRecords) {
  put(numbered(100, 1), 0);
  EXPECT_FALSE(reader.peek(kRing + 1));  // More than the ring holds.
  EXPECT_FALSE(reader.peek(8));          // Less than a header.
  EXPECT_FALSE(reader.peek(64));         // Less than the header tells.
  const std::uint32_t more_than_original = 101;
  std::memcpy(ring.data() + offsetof(CaptureRecord, captured_bytes), &more_than_original, 4);
  EXPECT_FALSE(reader.peek(reader.written_bytes()));
}

TEST_F(CaptureRingTest, TwoThreadsExchangeFramesWithoutWaiting) {
  constexpr std::uint64_t kFrames = 20'000;
  std::thread lane([&] {
    for (std::uint64_t i = 0; i < kFrames; ++i) put(numbered(i % 300, i), i);
  });
  std::uint64_t seen = 0;
  std::uint64_t lost = 0;
  std::uint64_t next = 0;
  while (next < kFrames && seen + reader.lost() < kFrames) {
    const CaptureReader::Frame* const frame = peek();
    if (frame == nullptr) continue;
    ++seen;
    lost += frame->record.lost_before;
    next += frame->record.lost_before;
    ASSERT_EQ(frame->record.time_ns, next);
    const auto bytes = numbered(next % 300, next);
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), frame->bytes.begin(), frame->bytes.end()));
    ++next;
    reader.pop();
  }
  lane.join();
  EXPECT_EQ(seen + reader.lost(), kFrames);
  EXPECT_LE(lost, reader.lost());
}

}  // namespace
}  // namespace ztcp::stats
