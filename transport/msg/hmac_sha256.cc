// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/hmac_sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ztcp::msg {
namespace {

constexpr std::size_t kBlockBytes = 64;

// FIPS 180-4 section 4.2.2.
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t load_be32(const std::byte* p) {
  return std::to_integer<std::uint32_t>(p[0]) << 24 | std::to_integer<std::uint32_t>(p[1]) << 16 |
         std::to_integer<std::uint32_t>(p[2]) << 8 | std::to_integer<std::uint32_t>(p[3]);
}

void store_be32(std::byte* p, std::uint32_t v) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<std::byte>(v >> (24 - 8 * i));
}

}  // namespace

// FIPS 180-4 section 6.2.2, with the section's own names.
void Sha256::compress(const std::byte* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = load_be32(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> add = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += add[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  total_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t take = std::min(kBlockBytes - block_bytes_, bytes.size());
    std::memcpy(block_.data() + block_bytes_, bytes.data(), take);
    block_bytes_ += take;
    bytes = bytes.subspan(take);
    if (block_bytes_ == kBlockBytes) {
      compress(block_.data());
      block_bytes_ = 0;
    }
  }
}

Digest Sha256::finish() {
  const std::uint64_t total_bits = total_bytes_ * 8;
  constexpr std::array<std::byte, kBlockBytes> kPadding = {std::byte{0x80}};
  const std::size_t used = block_bytes_;
  const std::size_t padding = used < 56 ? 56 - used : 120 - used;
  update(std::span(kPadding).first(padding));
  std::array<std::byte, 8> length;
  store_be32(length.data(), static_cast<std::uint32_t>(total_bits >> 32));
  store_be32(length.data() + 4, static_cast<std::uint32_t>(total_bits));
  update(length);
  Digest digest;
  for (std::size_t i = 0; i < state_.size(); ++i) store_be32(digest.data() + 4 * i, state_[i]);
  return digest;
}

Digest hmac_sha256(std::span<const std::byte> key,
                   std::initializer_list<std::span<const std::byte>> parts) {
  std::array<std::byte, kBlockBytes> padded{};
  if (key.size() > kBlockBytes) {
    Sha256 hash;
    hash.update(key);
    const Digest digest = hash.finish();
    std::copy(digest.begin(), digest.end(), padded.begin());
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  std::array<std::byte, kBlockBytes> inner_key;
  std::array<std::byte, kBlockBytes> outer_key;
  for (std::size_t i = 0; i < kBlockBytes; ++i) {
    inner_key[i] = padded[i] ^ std::byte{0x36};
    outer_key[i] = padded[i] ^ std::byte{0x5c};
  }
  Sha256 inner;
  inner.update(inner_key);
  for (const auto& part : parts) inner.update(part);
  const Digest inner_digest = inner.finish();
  Sha256 outer;
  outer.update(outer_key);
  outer.update(inner_digest);
  return outer.finish();
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace ztcp::msg
