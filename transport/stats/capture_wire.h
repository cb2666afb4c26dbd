// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The messages between a captured process and the program that captures its frames: over
// a unix socket of packets, one request and one answer. A request to start is answered with two
// descriptors (SCM_RIGHTS), of the rings and of the cursors (capture_ring.h); the capture runs
// until either side closes the socket. wire format version 1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"

namespace ztcp::stats {

inline constexpr std::uint64_t kCaptureMagic = 0x31504143'5043547a;  // "zTCPCAP1"
inline constexpr std::uint16_t kCaptureVersion = 1;

// Limits of a ring. All rings of a capture together are at most kMostCaptureBytes.
inline constexpr std::uint32_t kLeastRingBytes = 64U << 10;
inline constexpr std::uint32_t kMostRingBytes = 64U << 20;
inline constexpr std::uint64_t kMostCaptureBytes = 256U << 20;

enum class CaptureKind : std::uint16_t { kList = 1, kStart = 2 };

enum class CaptureStatus : std::uint16_t {
  kOk = 0,
  kBadRequest = 1,
  kOtherVersion = 2,
  kRefusedUser = 3,
  kNoDevice = 4,
  kBusy = 5,      // kMostCaptures run.
  kNoMemory = 6,  // See CaptureAnswer::sys_errno.
};

struct CaptureRequest {
  std::uint64_t magic = kCaptureMagic;
  std::uint16_t version = kCaptureVersion;
  CaptureKind kind = CaptureKind::kList;
  std::uint32_t ring_bytes = 0;  // For each lane; a power of two.
  std::uint32_t snap_bytes = 0;  // 0: whole frames.
  std::uint32_t reserved = 0;
  std::array<char, 64> device{};  // Ends with a NUL; kStart only.
};
static_assert(sizeof(CaptureRequest) == 88);

struct CaptureAnswer {
  std::uint64_t magic = kCaptureMagic;
  std::uint16_t version = kCaptureVersion;
  CaptureStatus status = CaptureStatus::kOk;
  std::int32_t sys_errno = 0;
  std::uint32_t lanes = 0;
  std::uint32_t ring_bytes = 0;
  std::array<std::uint8_t, 6> mac{};
  std::uint16_t mtu_bytes = 0;
  // kList: the devices of the process, each followed by a newline. Ends with a NUL.
  std::array<char, 992> devices{};
};
static_assert(sizeof(CaptureAnswer) == 1024);

// The name in a field that ends with a NUL.
template <std::size_t kSize>
std::string_view text_of(const std::array<char, kSize>& field) {
  const std::string_view whole(field.data(), field.size());
  return whole.substr(0, whole.find('\0'));
}
// Cuts a text that is too long.
template <std::size_t kSize>
void set_text(std::array<char, kSize>& field, std::string_view text) {
  field = {};
  text.substr(0, kSize - 1).copy(field.data(), kSize - 1);
}

// Checks a request; the ring size is brought within the limits for `lanes` by fitting_ring().
tl::expected<CaptureRequest, CaptureStatus> parse_request(std::span<const std::byte> message);
// kProtocol: no answer of this version, or one with impossible sizes.
Result<CaptureAnswer> parse_answer(std::span<const std::byte> message);

// The largest allowed size of a ring, not above the request's; a power of two.
std::uint32_t fitting_ring(std::uint32_t asked_bytes, std::size_t lanes);

}  // namespace ztcp::stats
