// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/kept_messages.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

constexpr std::size_t kLargest = 32U << 10;

std::span<const std::byte> bytes_of(const SendMessage& m) { return {m.data(), m.size_bytes()}; }

TEST(KeptMessages, AreCopiesOfStartedMessages) {
  KeptMessages kept(kLargest);
  std::vector<std::byte> bytes(5000, std::byte{7});
  SendMessage lent;
  lent.start(bytes, 9, 3);
  SendMessage* const copy = kept.keep(lent);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->data(), bytes.data()) << "not yet";
  EXPECT_EQ(copy->memory_key(), 3U);
  EXPECT_EQ(kept.lent(*copy), &lent);
  EXPECT_FALSE(kept.is_copied(*copy));
  kept.copy(*copy);
  EXPECT_TRUE(kept.is_copied(*copy));
  EXPECT_EQ(kept.lent(*copy), &lent) << "its owner is still to be told";
  EXPECT_EQ(&kept.release(*copy), &lent);
  EXPECT_EQ(kept.lent(*copy), nullptr);
  std::ranges::fill(bytes, std::byte{0});
  EXPECT_TRUE(std::ranges::equal(bytes_of(*copy), std::vector<std::byte>(5000, std::byte{7})));
  EXPECT_EQ(copy->tag(), 9U);
  EXPECT_EQ(copy->memory_key(), kUnmapped) << "the link knows other memory by that key";
  EXPECT_TRUE(kept.owns(*copy));
  EXPECT_FALSE(kept.owns(lent));
}

TEST(KeptMessages, AreFourOfTheLargestOrManySmallOnes) {
  KeptMessages kept(kLargest);
  const std::vector<std::byte> bytes(kLargest + 1);
  SendMessage lent;
  lent.start(bytes, 0, 0);
  EXPECT_EQ(kept.keep(lent), nullptr) << "too large";
  for (const auto& [size, count] :
       {std::pair<std::size_t, std::size_t>{kLargest, 4}, {2049, 32}, {2048, 64}, {0, 64}}) {
    std::vector<SendMessage*> taken;
    lent.start(std::span(bytes).first(size), 0, 0);
    while (SendMessage* const one = kept.keep(lent)) taken.push_back(one);
    EXPECT_EQ(taken.size(), count) << size;
    for (SendMessage* one : taken) kept.give_back(*one);
  }
}

TEST(KeptMessages, AreDisabledBySizeZero) {
  KeptMessages kept(0);
  SendMessage empty;
  empty.start({}, 0, 0);
  EXPECT_EQ(kept.keep(empty), nullptr);
  EXPECT_FALSE(kept.owns(empty));
}

// Taken and given back in any order, no copy overwrites another.
TEST(KeptMessages, DoNotOverlap) {
  KeptMessages kept(kLargest);
  std::mt19937_64 rng(1);
  struct Taken {
    SendMessage* copy;
    std::byte fill;
  };
  std::vector<Taken> taken;
  std::vector<std::byte> bytes(kLargest);
  for (int i = 0; i < 20'000; ++i) {
    if (rng() % 2 == 0 && !taken.empty()) {
      std::swap(taken[rng() % taken.size()], taken.back());
      const auto [copy, fill] = taken.back();
      taken.pop_back();
      const auto is_its = [fill = fill](std::byte b) { return b == fill; };
      ASSERT_TRUE(std::ranges::all_of(bytes_of(*copy), is_its)) << i;
      kept.give_back(*copy);
      continue;
    }
    const std::size_t size = rng() % ((std::size_t{1} << rng() % 16) + 1);
    const auto fill = static_cast<std::byte>(rng());
    std::fill_n(bytes.begin(), size, fill);
    SendMessage lent;
    lent.start(std::span(bytes).first(size), 0, 0);
    SendMessage* const copy = kept.keep(lent);
    if (copy == nullptr) continue;
    kept.copy(*copy);
    taken.push_back({copy, fill});
  }
}

}  // namespace
}  // namespace ztcp::msg
