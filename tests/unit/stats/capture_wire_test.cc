// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/capture_wire.h"

#include <cstring>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

CaptureRequest start_request() {
  CaptureRequest request;
  request.kind = CaptureKind::kStart;
  request.ring_bytes = 1U << 20;
  request.snap_bytes = 256;
  set_text(request.device, "ztcp0");
  return request;
}

template <class Message>
std::span<const std::byte> bytes_of(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}

CaptureStatus refusal(const CaptureRequest& request) {
  const auto parsed = parse_request(bytes_of(request));
  return parsed ? CaptureStatus::kOk : parsed.error();
}

TEST(ParseRequest, TakesBothKinds) {
  const auto start = parse_request(bytes_of(start_request()));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->kind, CaptureKind::kStart);
  EXPECT_EQ(text_of(start->device), "ztcp0");
  EXPECT_EQ(start->snap_bytes, 256U);
  EXPECT_EQ(refusal({}), CaptureStatus::kOk);
}

TEST(ParseRequest, TellsAnotherVersionFromNoise) {
  CaptureRequest request = start_request();
  request.version = 2;
  EXPECT_EQ(refusal(request), CaptureStatus::kOtherVersion);
  // Another version's request may have another length.
  EXPECT_EQ(parse_request(bytes_of(request).first(40)).error(), CaptureStatus::kOtherVersion);
  request.magic = 1;
  EXPECT_EQ(refusal(request), CaptureStatus::kBadRequest);
}

TEST(ParseRequest, RefusesWrongLengthsKindsAndNames) {
  CaptureRequest request = start_request();
  EXPECT_EQ(parse_request({}).error(), CaptureStatus::kBadRequest);
  EXPECT_EQ(parse_request(bytes_of(request).first(87)).error(), CaptureStatus::kBadRequest);
  request.kind = static_cast<CaptureKind>(3);
  EXPECT_EQ(refusal(request), CaptureStatus::kBadRequest);
  request = start_request();
  request.device.fill('a');  // Without an end.
  EXPECT_EQ(refusal(request), CaptureStatus::kBadRequest);
  for (const char* name : {"", "two words", "line\n", "\x1b[2J"}) {
    set_text(request.device, name);
    EXPECT_EQ(refusal(request), CaptureStatus::kBadRequest) << name;
  }
}

TEST(ParseAnswer, ChecksTheSizes) {
  CaptureAnswer answer;
  answer.lanes = 2;
  answer.ring_bytes = 1U << 20;
  EXPECT_TRUE(parse_answer(bytes_of(answer)));
  EXPECT_FALSE(parse_answer(bytes_of(answer).first(1023)));
  answer.ring_bytes = 3U << 20;
  EXPECT_FALSE(parse_answer(bytes_of(answer)));
  answer.ring_bytes = 1U << 30;
  EXPECT_FALSE(parse_answer(bytes_of(answer)));
  answer.ring_bytes = 1U << 20;
  answer.lanes = 1000;
  EXPECT_FALSE(parse_answer(bytes_of(answer)));
  answer.status = CaptureStatus::kNoDevice;  // Has no sizes.
  EXPECT_TRUE(parse_answer(bytes_of(answer)));
  answer.version = 9;
  EXPECT_FALSE(parse_answer(bytes_of(answer)));
}

TEST(FittingRing, IsAPowerOfTwoWithinTheLimits) {
  EXPECT_EQ(fitting_ring(0, 1), kLeastRingBytes);
  EXPECT_EQ(fitting_ring(5U << 20, 1), 4U << 20);
  EXPECT_EQ(fitting_ring(UINT32_MAX, 1), kMostRingBytes);
  EXPECT_EQ(fitting_ring(UINT32_MAX, 8), 32U << 20);  // 256 MiB together.
  EXPECT_EQ(fitting_ring(UINT32_MAX, 0), kMostRingBytes);
}

}  // namespace
}  // namespace ztcp::stats
