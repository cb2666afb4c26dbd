// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash that a peer without the key can neither
// predict nor collide. For initial sequence numbers (RFC 6528) and hash tables whose keys strangers
// choose.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ztcp {

using SipHashKey = std::array<std::uint64_t, 2>;

namespace detail {
struct SipState {
  std::uint64_t v0, v1, v2, v3;

  constexpr void round() noexcept {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  constexpr void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};
}  // namespace detail

inline std::uint64_t siphash(const SipHashKey& key, std::span<const std::byte> bytes) noexcept {
  detail::SipState state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                         key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    state.absorb(word);
  }
  std::uint64_t last = std::uint64_t{bytes.size()} << 56;
  for (std::size_t i = 0; i < left; ++i)
    last |= std::uint64_t{std::to_integer<std::uint8_t>(p[i])} << (8 * i);
  state.absorb(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace ztcp
