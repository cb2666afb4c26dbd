// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/hmac_sha256.h"

#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte b : digest) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", std::to_integer<unsigned>(b));
    text += two;
  }
  return text;
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string sha256(const std::string& text) {
  Sha256 hash;
  hash.update(bytes(text));
  return hex(hash.finish());
}

// FIPS 180-4 examples.
TEST(Sha256, KnowsThePublishedVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TakesInputInAnyPieces) {
  const std::string text(300, 'x');
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.update(bytes(text).first(cut));
    hash.update(bytes(text).subspan(cut));
    ASSERT_EQ(hex(hash.finish()), sha256(text)) << cut;
  }
}

struct Vector {
  std::string key;
  std::string data;
  const char* mac;
};

class Rfc4231 : public testing::TestWithParam<Vector> {};

TEST_P(Rfc4231, Matches) {
  const Vector& v = GetParam();
  EXPECT_EQ(hex(hmac_sha256(bytes(v.key), {bytes(v.data)})), v.mac);
  // Parts are hashed as one message.
  const std::size_t half = v.data.size() / 2;
  EXPECT_EQ(
      hex(hmac_sha256(bytes(v.key), {bytes(v.data).first(half), bytes(v.data).subspan(half)})),
      v.mac);
}

std::string counting(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += static_cast<char>(i);
  return text;
}

// RFC 4231 section 4, cases 1 to 4, 6 and 7 (case 5 is of a truncated output).
INSTANTIATE_TEST_SUITE_P(
    Cases, Rfc4231,
    testing::Values(
        Vector{std::string(20, '\x0b'), "Hi There",
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        Vector{"Jefe", "what do ya want for nothing?",
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        Vector{std::string(20, '\xaa'), std::string(50, '\xdd'),
               "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        Vector{counting(25), std::string(50, '\xcd'),
               "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        Vector{std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        Vector{std::string(131, '\xaa'),
               "This is a test using a larger than block-size key and a larger than block-size "
               "data. The key needs to be hashed before being used by the HMAC algorithm.",
               "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"}));

TEST(EqualInConstantTime, ComparesAllBytes) {
  Digest a{};
  Digest b{};
  EXPECT_TRUE(equal_in_constant_time(a, b));
  for (std::size_t i = 0; i < b.size(); ++i) {
    b = a;
    b[i] = std::byte{1};
    EXPECT_FALSE(equal_in_constant_time(a, b));
  }
  EXPECT_FALSE(equal_in_constant_time(a, std::span(a).first(31)));
}

}  // namespace
}  // namespace ztcp::msg
