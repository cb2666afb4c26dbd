// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/tcp_options.h"

#include <algorithm>

#include "transport/wire/byte_order.h"

namespace ztcp::wire {
namespace {

enum Kind : std::uint8_t {
  kEnd = 0,
  kNop = 1,
  kMss = 2,
  kWindowScale = 3,
  kSackPermitted = 4,
  kSack = 5,
  kTimestamps = 8,
  kAccEcn0 = 172,  // Counters of ECT(0), CE and ECT(1); behind the second the rest may be missing.
  kAccEcn1 = 174,  // The same, ECT(1) first.
};

std::uint32_t load_be24(const std::byte* p) noexcept {
  return std::uint32_t{load_be16(p)} << 8U | load_u8(p + 2);
}
std::byte* put_be24(std::byte* p, std::uint32_t value) noexcept {
  store_be16(p, static_cast<std::uint16_t>(value >> 8U));
  store_u8(p + 2, static_cast<std::uint8_t>(value));
  return p + 3;
}

// One option that has a length. False: its length is wrong for its kind.
bool parse_one(std::uint8_t kind, std::span<const std::byte> body, TcpOptions& options) noexcept {
  const std::byte* p = body.data();
  switch (kind) {
    case kMss:
      if (body.size() != 2) return false;
      options.mss_bytes = load_be16(p);
      return true;
    case kWindowScale:
      if (body.size() != 1) return false;
      options.window_scale = std::min<std::uint8_t>(load_u8(p), 14);
      return true;
    case kSackPermitted:
      if (!body.empty()) return false;
      options.sack_permitted = true;
      return true;
    case kSack: {
      const std::size_t count = body.size() / 8;
      if (body.size() % 8 != 0 || count == 0 || count > kMaxSackBlocks) return false;
      for (std::size_t i = 0; i < count; ++i)
        options.sack[i] = {load_be32(p + 8 * i), load_be32(p + 8 * i + 4)};
      options.sack_count = static_cast<std::uint8_t>(count);
      return true;
    }
    case kTimestamps:
      if (body.size() != 8) return false;
      options.timestamps = Timestamps{load_be32(p), load_be32(p + 4)};
      return true;
    case kAccEcn0:
    case kAccEcn1: {
      // RFC 9768 section 3.2.3: other lengths are ignored, for later extensions.
      if (body.size() != 6 && body.size() != 9) return true;
      EcnBytes bytes{.ce = load_be24(p + 3), .is_whole = body.size() == 9};
      if (bytes.is_whole) {
        bytes.ect0 = load_be24(kind == kAccEcn0 ? p : p + 6);
        bytes.ect1 = load_be24(kind == kAccEcn0 ? p + 6 : p);
      }
      options.ecn_bytes = bytes;
      return true;
    }
    default:
      return true;
  }
}

std::byte* put_header(std::byte* p, std::uint8_t kind, std::size_t option_bytes) noexcept {
  store_u8(p, kind);
  store_u8(p + 1, static_cast<std::uint8_t>(option_bytes));
  return p + 2;
}

std::byte* put_nops(std::byte* p, int count) noexcept {
  for (; count > 0; --count) store_u8(p++, kNop);
  return p;
}

std::byte* put_ecn_bytes(std::byte* p, const std::byte* end, const EcnBytes& bytes) noexcept {
  constexpr std::size_t kWholeBytes = 11;
  const auto left = static_cast<std::size_t>(end - p);
  if (left < kShortEcnOptionBytes) return p;
  const bool is_whole = bytes.is_whole && left > kWholeBytes;
  if (is_whole) p = put_nops(p, 1);
  p = put_header(p, kAccEcn0, is_whole ? kWholeBytes : kShortEcnOptionBytes);
  p = put_be24(put_be24(p, bytes.ect0), bytes.ce);
  return is_whole ? put_be24(p, bytes.ect1) : p;
}

}  // namespace

bool parse_tcp_options(std::span<const std::byte> bytes, TcpOptions& options) noexcept {
  options.timestamps.reset();
  options.mss_bytes.reset();
  options.window_scale.reset();
  options.ecn_bytes.reset();
  options.sack_permitted = false;
  options.sack_count = 0;
  if (bytes.size() == kTimestampOptionBytes && load_be32(bytes.data()) == kNopNopTimestamps) {
    options.timestamps = Timestamps{load_be32(bytes.data() + 4), load_be32(bytes.data() + 8)};
    return true;
  }
  while (!bytes.empty()) {
    const std::uint8_t kind = load_u8(bytes.data());
    if (kind == kEnd) break;
    if (kind == kNop) {
      bytes = bytes.subspan(1);
      continue;
    }
    // The length includes kind and length: below 2 the parser would make no progress.
    if (bytes.size() < 2) return false;
    const std::size_t length = load_u8(bytes.data() + 1);
    if (length < 2 || length > bytes.size()) return false;
    if (!parse_one(kind, bytes.subspan(2, length - 2), options)) return false;
    bytes = bytes.subspan(length);
  }
  return true;
}

std::size_t emit_tcp_options(const TcpOptions& options, std::byte* out) noexcept {
  std::byte* p = out;
  if (options.mss_bytes) {
    p = put_header(p, kMss, 4);
    store_be16(p, *options.mss_bytes);
    p += 2;
  }
  if (options.window_scale) {
    p = put_header(put_nops(p, 1), kWindowScale, 3);
    store_u8(p++, *options.window_scale);
  }
  // SACK-permitted takes the place of the two NOPs in front of the timestamps.
  if (options.sack_permitted) {
    p = put_header(p, kSackPermitted, 2);
    if (!options.timestamps) p = put_nops(p, 2);
  }
  if (options.timestamps) {
    if (!options.sack_permitted) p = put_nops(p, 2);
    p = put_header(p, kTimestamps, 10);
    store_be32(p, options.timestamps->value);
    store_be32(p + 4, options.timestamps->echo);
    p += 8;
  }
  const std::size_t left = kMaxTcpOptionBytes - static_cast<std::size_t>(p - out);
  const std::size_t blocks =
      left < 12 ? 0 : std::min<std::size_t>(options.sack_count, (left - 4) / 8);
  if (blocks > 0) {
    p = put_header(put_nops(p, 2), kSack, 2 + 8 * blocks);
    for (std::size_t i = 0; i < blocks; ++i, p += 8) {
      store_be32(p, options.sack[i].begin);
      store_be32(p + 4, options.sack[i].end);
    }
  }
  if (options.ecn_bytes) p = put_ecn_bytes(p, out + kMaxTcpOptionBytes, *options.ecn_bytes);
  return static_cast<std::size_t>(p - out);
}

}  // namespace ztcp::wire
