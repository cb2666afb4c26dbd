// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/capture_tap.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

// A ring with its writer and reader.
struct Ring {
  CaptureLaneState state;
  std::vector<std::byte> bytes = std::vector<std::byte>(1U << 16);
  CaptureCursor cursor;
  CaptureWriter writer{state, bytes, cursor, 0};
  CaptureReader reader{state, bytes, cursor};

  const CaptureReader::Frame* peek() { return reader.peek(reader.written_bytes()).value(); }
};

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

struct CaptureTapTest : testing::Test {
  void receive_one() {
    const auto bytes = filled(60, 1);
    RxFrame frame{};
    frame.head = bytes;
    tap.received({&frame, 1});
  }
  CaptureTap tap;
  Ring ring;
};

TEST_F(CaptureTapTest, RecordsNothingUnlessAttached) {
  receive_one();
  ASSERT_TRUE(tap.attach(ring.writer));
  receive_one();
  tap.detach(ring.writer);
  receive_one();
  EXPECT_EQ(ring.reader.recorded(), 1U);
}

TEST_F(CaptureTapTest, ReceivedFrameIsAllItsBuffers) {
  const auto head = filled(54, 1);
  const std::array rest{filled(10, 2), filled(20, 3)};
  const std::array<std::span<const std::byte>, 2> more{rest[0], rest[1]};
  RxFrame frame{};
  frame.head = head;
  frame.more = more;
  ASSERT_TRUE(tap.attach(ring.writer));
  tap.received({&frame, 1});
  const CaptureReader::Frame* const seen = ring.peek();
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->record.flags & CaptureRecord::kSent, 0);
  ASSERT_EQ(seen->bytes.size(), 84U);
  EXPECT_EQ(seen->bytes[53], std::byte{1});
  EXPECT_EQ(seen->bytes[54], std::byte{2});
  EXPECT_EQ(seen->bytes[64], std::byte{3});
  EXPECT_EQ(seen->bytes[83], std::byte{3});
  EXPECT_NE(seen->record.time_ns, 0U);
}

TEST_F(CaptureTapTest, SentFrameIsItsHeaderAndFragmentsAndTellsHowItIsCut) {
  const std::array payload{filled(1448, 5), filled(100, 6)};
  TxFrame frame{};
  std::memset(frame.header.data(), 9, 66);
  frame.header_bytes = 66;
  frame.fragment_count = 2;
  frame.fragments[0] = {payload[0].data(), 1448, kUnmapped};
  frame.fragments[1] = {payload[1].data(), 100, kUnmapped};
  frame.payload_bytes = 1548;
  frame.segment_size_bytes = 1448;
  frame.checksum_offload = true;
  ASSERT_TRUE(tap.attach(ring.writer));
  tap.sent({&frame, 1});
  const CaptureReader::Frame* const seen = ring.peek();
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->record.flags, CaptureRecord::kSent | CaptureRecord::kWithoutChecksum);
  EXPECT_EQ(seen->record.segment_bytes, 1448U);
  ASSERT_EQ(seen->bytes.size(), 66U + 1548U);
  EXPECT_EQ(seen->bytes[65], std::byte{9});
  EXPECT_EQ(seen->bytes[66], std::byte{5});
  EXPECT_EQ(seen->bytes[66 + 1448], std::byte{6});
}

TEST_F(CaptureTapTest, TakesTwoWritersAndNoThird) {
  Ring second;
  Ring third;
  ASSERT_TRUE(tap.attach(ring.writer));
  ASSERT_TRUE(tap.attach(second.writer));
  EXPECT_FALSE(tap.attach(third.writer));
  receive_one();
  tap.detach(ring.writer);
  receive_one();
  EXPECT_EQ(ring.reader.recorded(), 1U);
  EXPECT_EQ(second.reader.recorded(), 2U);
  EXPECT_TRUE(tap.attach(third.writer));
  tap.detach(third.writer);
  tap.detach(third.writer);  // Not attached: without effect.
  receive_one();
  EXPECT_EQ(second.reader.recorded(), 3U);
}

// Under ThreadSanitizer and AddressSanitizer: a lane never uses a writer after detach().
TEST_F(CaptureTapTest, DetachWaitsForTheLane) {
  std::atomic<bool> ends{false};
  std::thread lane([&] {
    while (!ends.load(std::memory_order_relaxed)) receive_one();
  });
  std::uint64_t recorded = 0;
  for (int round = 0; round < 200 || recorded == 0; ++round) {
    auto own = std::make_unique<Ring>();
    ASSERT_TRUE(tap.attach(own->writer));
    std::this_thread::yield();
    tap.detach(own->writer);
    recorded += own->reader.recorded();
  }
  ends = true;
  lane.join();
}

}  // namespace
}  // namespace ztcp::stats
