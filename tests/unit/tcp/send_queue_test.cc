// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/send_queue.h"

#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using Bytes = std::vector<std::byte>;

class SendQueueTest : public testing::Test {
 protected:
  SendQueueTest() : queue(pieces, copied) {}

  static Fragment fragment(const Bytes& bytes, std::uint32_t key = kUnmapped) {
    return {bytes.data(), static_cast<std::uint32_t>(bytes.size()), key};
  }
  Bytes read(std::uint64_t offset, std::uint32_t bytes) {
    Bytes out;
    while (out.size() < bytes) {
      const auto g = queue.gather(offset + out.size(),
                                  bytes - static_cast<std::uint32_t>(out.size()), fragments);
      for (std::size_t i = 0; i < g.count; ++i)
        out.insert(out.end(), fragments[i].data, fragments[i].data + fragments[i].size_bytes);
    }
    return out;
  }

  std::array<SendQueue::Piece, 16> pieces;
  std::array<std::byte, 2048> copied;
  SendQueue queue;
  std::array<Fragment, TxFrame::kMaxFragments> fragments;
};

TEST_F(SendQueueTest, GathersAcrossPieces) {
  const Bytes head(24, std::byte{1});
  const Bytes body(5000, std::byte{2});
  const Bytes tail(100, std::byte{3});
  const std::array referenced{fragment(body, 7), fragment(tail, 8)};
  ASSERT_TRUE(queue.write(head, referenced));
  EXPECT_EQ(queue.end(), 5124U);
  const auto g = queue.gather(20, 5100, fragments);
  EXPECT_EQ(g.bytes, 5100U);
  ASSERT_EQ(g.count, 3);
  EXPECT_EQ(fragments[0].size_bytes, 4U);
  EXPECT_EQ(fragments[1].data, body.data()) << "referenced, not copied";
  EXPECT_EQ(fragments[1].memory_key, 7U);
  EXPECT_EQ(fragments[2].size_bytes, 96U);
}

TEST_F(SendQueueTest, AdjacentRecordsShareOnePiece) {
  const Bytes record(24, std::byte{1});
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(queue.write(record, {}));
  EXPECT_EQ(queue.gather(0, 960, fragments).count, 1);
}

// Acknowledged bytes make room, also inside a merged piece: small messages must not wait for the
// rest of the ring.
TEST_F(SendQueueTest, PartsOfAMergedPieceMakeRoom) {
  const Bytes record(64, std::byte{1});
  while (queue.write(record, {})) {
  }
  EXPECT_EQ(queue.end(), 2048U);
  for (std::uint64_t acked = 64; acked <= 20'480; acked += 64) {
    queue.pop(acked);
    ASSERT_TRUE(queue.write(record, {})) << acked;
    ASSERT_FALSE(queue.write(record, {})) << acked;
  }
}

TEST_F(SendQueueTest, IsAllOrNothing) {
  const Bytes body(10, std::byte{2});
  const std::array three{fragment(body), fragment(body), fragment(body)};
  int writes = 0;
  while (queue.write({}, three)) ++writes;
  EXPECT_EQ(writes, 4) << "2 pieces are kept for a copied part that wraps";
  EXPECT_EQ(queue.end(), 120U);
  EXPECT_FALSE(queue.has_room());
  queue.pop(90);
  EXPECT_TRUE(queue.write({}, three));
}

TEST_F(SendQueueTest, StopsWhereFragmentsRunOut) {
  const Bytes body(10, std::byte{2});
  const std::array four{fragment(body), fragment(body), fragment(body), fragment(body)};
  ASSERT_TRUE(queue.write({}, four));
  const auto g = queue.gather(5, 30, std::span(fragments).first(2));
  EXPECT_EQ(g.bytes, 15U);
  EXPECT_EQ(queue.gather(20, 20, fragments).bytes, 20U) << "the next call goes on";
}

// Writes, reads anywhere and acknowledgments in any mix give the same stream.
TEST_F(SendQueueTest, IsTheSameStreamForAnyPieces) {
  std::mt19937 random(5);
  std::vector<Bytes> memory;
  Bytes stream;
  memory.reserve(4000);
  for (int step = 0; step < 4000; ++step) {
    Bytes small(random() % 200);
    for (auto& b : small) b = static_cast<std::byte>(random());
    Bytes& large = memory.emplace_back(random() % 3 == 0 ? 0 : random() % 2000);
    for (auto& b : large) b = static_cast<std::byte>(random());
    const std::array referenced{fragment(large)};
    if (queue.write(small, referenced)) {
      stream.insert(stream.end(), small.begin(), small.end());
      stream.insert(stream.end(), large.begin(), large.end());
    }
    ASSERT_EQ(queue.end(), stream.size());
    const std::uint64_t size = queue.size_bytes();
    if (size > 0) {
      const std::uint64_t from = queue.begin() + random() % size;
      const auto bytes = static_cast<std::uint32_t>(random() % (queue.end() - from));
      const Bytes got = read(from, bytes);
      ASSERT_TRUE(
          std::equal(got.begin(), got.end(), stream.begin() + static_cast<std::ptrdiff_t>(from)));
    }
    queue.pop(queue.begin() + (size == 0 ? 0 : random() % (size + 1)));
  }
}

}  // namespace
}  // namespace ztcp::tcp
