// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two Stacks over a cable that loses frames by a seeded die. The simulator does this at length;
// here it checks the classes together.
#include <random>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

struct Case {
  double loss;
  unsigned seed;
};

class Lossy : public testing::TestWithParam<Case> {};

void feed(Stream* stream, const Bytes& bytes, std::size_t& done) {
  while (done < bytes.size() && stream->room() > 0) {
    const std::size_t size = std::min<std::size_t>(100'000, bytes.size() - done);
    const Fragment fragment{bytes.data() + done, static_cast<std::uint32_t>(size), kUnmapped};
    if (!stream->write({}, std::span(&fragment, 1))) break;
    done += size;
  }
}

TEST_P(Lossy, DeliversEveryByteOnceAndEnds) {
  Pair pair;
  std::mt19937 die(GetParam().seed);
  std::bernoulli_distribution lost(GetParam().loss);
  pair.drop = [&](const TxFrame&, bool) { return lost(die); };
  const auto stream = pair.left.connect(pair.now, {kPeerIp, kListenPort}, pair.client);
  ASSERT_TRUE(stream);
  pair.client.stream = *stream;
  ASSERT_TRUE(pair.run_until([&] { return pair.server.opened; }));
  const Bytes out = pattern(3'000'000);
  std::size_t sent = 0;
  ASSERT_TRUE(pair.run_until([&] {
    if (pair.client.opened) feed(pair.client.stream, out, sent);
    return pair.server.received.size() >= out.size();
  }));
  EXPECT_EQ(pair.server.received, out);
  EXPECT_FALSE(pair.client.failed);
  // The last ACK may still be in flight.
  ASSERT_TRUE(pair.run_until([&] { return pair.client.acked == out.size(); }));
  pair.client.stream->close();
  pair.server.stream->close();
  ASSERT_TRUE(
      pair.run_until([&] { return pair.left.unfinished() == 0 && pair.right.unfinished() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Dice, Lossy,
                         testing::Values(Case{0.001, 1}, Case{0.01, 2}, Case{0.01, 3},
                                         Case{0.05, 4}, Case{0.05, 5}, Case{0.2, 6}, Case{0.2, 7}));

}  // namespace
}  // namespace ztcp::tcp::test
