// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// HMAC-SHA256 (RFC 2104 over FIPS 180-4) for handshakes: a few hundred bytes per connection, so
// plain code without CPU features.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace ztcp::msg {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  Digest finish();

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t block_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

// Over the concatenation of `parts`.
Digest hmac_sha256(std::span<const std::byte> key,
                   std::initializer_list<std::span<const std::byte>> parts);

// Compares in a time that does not depend on the position of the first difference.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace ztcp::msg
