// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/tx_queue.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/polling.h"

namespace ztcp::sockets {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes(std::size_t size, int seed) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
  return out;
}

// Takes bytes as a kernel with room for `most` would.
Bytes take(TxQueue& queue, std::size_t most) {
  std::array<iovec, 8> vectors;
  const std::size_t count = queue.gather(vectors, most);
  Bytes out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* data = static_cast<const std::byte*>(vectors[i].iov_base);
    out.insert(out.end(), data, data + vectors[i].iov_len);
  }
  queue.pop(out.size());
  return out;
}

TEST(TxQueue, KeepsTheOrderOfBytesTakenInPiecesOfAnySize) {
  std::mt19937_64 random(3);
  TxQueue queue;
  const Bytes user = bytes(100'000, 7);
  Bytes pushed;
  Bytes taken;
  for (int i = 0; i < 20'000; ++i) {
    const Bytes copied = bytes(random() % 1025, i);
    std::array<Fragment, 2> fragments{};
    for (Fragment& one : fragments) {
      one.data = user.data() + random() % 50'000;
      one.size_bytes = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 50'000 : 0);
    }
    if (queue.has_room()) {
      ASSERT_TRUE(queue.push(copied, fragments));
      pushed.insert(pushed.end(), copied.begin(), copied.end());
      for (const Fragment& one : fragments)
        pushed.insert(pushed.end(), one.data, one.data + one.size_bytes);
    } else {
      ASSERT_FALSE(queue.push(copied, fragments));
    }
    const Bytes more = take(queue, random() % 4 == 0 ? 1 + random() % 200'000 : 1);
    taken.insert(taken.end(), more.begin(), more.end());
    ASSERT_EQ(queue.bytes(), pushed.size() - taken.size());
    if (queue.empty()) {
      ASSERT_TRUE(test::are_equal(taken, pushed));
      pushed.clear();
      taken.clear();
    }
  }
  while (!queue.empty()) {
    const Bytes more = take(queue, 1U << 20);
    taken.insert(taken.end(), more.begin(), more.end());
  }
  EXPECT_TRUE(test::are_equal(taken, pushed));
}

TEST(TxQueue, SmallMessagesLeaveInOneVector) {
  TxQueue queue;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(queue.push(bytes(44, i), {}));
  std::array<iovec, 8> vectors;
  EXPECT_EQ(queue.gather(vectors, 1U << 20), 1U);
  EXPECT_EQ(vectors[0].iov_len, 440U);
}

TEST(TxQueue, IsReusableAfterClear) {
  TxQueue queue;
  while (queue.has_room()) ASSERT_TRUE(queue.push(bytes(1000, 1), {}));
  take(queue, 1500);
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0U);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(queue.push(bytes(1000, 1), {}));
  EXPECT_EQ(take(queue, 20'000).size(), 20'000U);
}

}  // namespace
}  // namespace ztcp::sockets
