// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/stack.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

TEST(Stack, CarriesBytesBothWaysAndCloses) {
  Pair pair;
  pair.connect();
  const Bytes out = pattern(1'000'000);
  const Bytes back = pattern(300'000, 7);
  std::size_t sent = 0;
  std::size_t returned = 0;
  const auto feed = [](Stream* stream, const Bytes& bytes, std::size_t& done) {
    while (done < bytes.size() && stream->room() > 0) {
      const std::size_t size = std::min<std::size_t>(64 << 10, bytes.size() - done);
      const Fragment fragment{bytes.data() + done, static_cast<std::uint32_t>(size), kUnmapped};
      if (!stream->write({}, std::span(&fragment, 1))) break;
      done += size;
    }
  };
  ASSERT_TRUE(pair.run_until([&] {
    feed(pair.client.stream, out, sent);
    feed(pair.server.stream, back, returned);
    return pair.server.received.size() == out.size() &&
           pair.client.received.size() == back.size() && pair.client.acked == out.size();
  }));
  EXPECT_EQ(pair.server.received, out);
  EXPECT_EQ(pair.client.received, back);
  EXPECT_EQ(pair.left.counters().tx_retransmitted_bytes, 0U);
  EXPECT_EQ(pair.left.counters().rto_fired, 0U);

  pair.client.stream->close();
  pair.pump();
  EXPECT_TRUE(pair.server.closed);
  EXPECT_EQ(pair.left.unfinished(), 0U);
  pair.server.stream->close();
  pair.pump();
  EXPECT_EQ(pair.right.unfinished(), 0U);
  ASSERT_FALSE(pair.run_until([] { return false; }, 10s));
  EXPECT_EQ(pair.left.next_deadline(), kNever);
  EXPECT_EQ(pair.right.next_deadline(), kNever);
}

}  // namespace
}  // namespace ztcp::tcp::test
