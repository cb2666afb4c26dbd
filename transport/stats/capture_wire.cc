// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/capture_wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace ztcp::stats {
namespace {

constexpr std::size_t kMostLanes = 64;

bool is_name(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// The same in all versions.
struct Start {
  std::uint64_t magic;
  std::uint16_t version;
};

std::optional<Start> start_of(std::span<const std::byte> message) {
  Start start;
  if (message.size() < sizeof(start)) return std::nullopt;
  std::memcpy(&start, message.data(), sizeof(start));
  return start;
}

}  // namespace

tl::expected<CaptureRequest, CaptureStatus> parse_request(std::span<const std::byte> message) {
  const auto start = start_of(message);
  if (!start || start->magic != kCaptureMagic) return tl::unexpected(CaptureStatus::kBadRequest);
  if (start->version != kCaptureVersion) return tl::unexpected(CaptureStatus::kOtherVersion);
  CaptureRequest request;
  if (message.size() != sizeof(request)) return tl::unexpected(CaptureStatus::kBadRequest);
  std::memcpy(&request, message.data(), sizeof(request));
  switch (request.kind) {
    case CaptureKind::kList:
      return request;
    case CaptureKind::kStart:
      if (request.device.back() != '\0' || !is_name(text_of(request.device))) break;
      return request;
  }
  return tl::unexpected(CaptureStatus::kBadRequest);
}

Result<CaptureAnswer> parse_answer(std::span<const std::byte> message) {
  const auto start = start_of(message);
  if (!start || start->magic != kCaptureMagic) return fail(Errc::kProtocol, "capture answer");
  CaptureAnswer answer;
  if (start->version != kCaptureVersion || message.size() != sizeof(answer))
    return fail(Errc::kProtocol, "version of the capture answer");
  std::memcpy(&answer, message.data(), sizeof(answer));
  answer.devices.back() = '\0';
  if (answer.status != CaptureStatus::kOk || answer.lanes == 0) return answer;
  if (answer.lanes > kMostLanes || !std::has_single_bit(answer.ring_bytes) ||
      answer.ring_bytes < kLeastRingBytes || answer.ring_bytes > kMostRingBytes)
    return fail(Errc::kProtocol, "sizes in the capture answer");
  return answer;
}

std::uint32_t fitting_ring(std::uint32_t asked_bytes, std::size_t lanes) {
  const std::uint64_t share = kMostCaptureBytes / std::max<std::size_t>(lanes, 1);
  const std::uint64_t most = std::min<std::uint64_t>({asked_bytes, kMostRingBytes, share});
  return std::bit_floor(static_cast<std::uint32_t>(std::max<std::uint64_t>(most, kLeastRingBytes)));
}

}  // namespace ztcp::stats
