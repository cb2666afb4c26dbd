// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/siphash.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

// The vectors published with the algorithm: key 00 01 .. 0f, inputs of 0, 1, .. bytes 00 01 02 ...
TEST(SipHash, PublishedVectors) {
  constexpr SipHashKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  constexpr std::uint64_t kExpected[] = {
      0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
      0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
      0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
      0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5};
  std::vector<std::byte> input;
  for (const std::uint64_t expected : kExpected) {
    EXPECT_EQ(siphash(kKey, input), expected) << input.size() << " bytes";
    input.push_back(std::byte(input.size()));
  }
}

TEST(SipHash, KeyMatters) {
  const std::vector<std::byte> input(13);
  EXPECT_NE(siphash({1, 2}, input), siphash({2, 1}, input));
}

}  // namespace
}  // namespace ztcp
