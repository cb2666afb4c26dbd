// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/reason.h"

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

TEST(Reason, NamesBothNumbersFromTheReadersSide) {
  EXPECT_EQ(describe({Reason::kVersion, false, 1, 2}),
            "wire version 1 here, 2 there: install the same ztcp on both hosts");
  EXPECT_EQ(describe({Reason::kVersion, true, 2, 1}),
            "the peer refused: wire version 2 there, 1 here: install the same ztcp on both hosts");
  EXPECT_EQ(describe({Reason::kTruncated, true, 100, 200}),
            "the peer refused: a message of 200 bytes does not fit the posted buffer of 100");
  EXPECT_EQ(describe({Reason::kKeyMissing, true, 0, 0}),
            "the peer refused: a cluster key is set there but not here");
  EXPECT_EQ(describe({Reason::kProcessEnded, true, 0, 0}),
            "the peer's process ended without closing the connection");
  EXPECT_EQ(describe({Reason::kAborted, true, 0, 0}), "the peer aborted the connection");
  EXPECT_EQ(describe({Reason::kFull, true, 4096, 0}),
            "the peer refused: connection limit of its NIC reached: 4096");
  EXPECT_EQ(describe({}), "");
}

TEST(Reason, EachReasonHasATextAndAnErrorCode) {
  for (std::uint32_t i = 1; i <= kLastReason; ++i) {
    EXPECT_FALSE(describe({static_cast<Reason>(i), true, 1, 2}).empty());
    EXPECT_NE(to_errc(static_cast<Reason>(i)), Errc::kSystem);
  }
  EXPECT_EQ(to_errc(Reason::kTruncated), Errc::kTruncated);
  EXPECT_EQ(to_errc(Reason::kFull), Errc::kFull);
}

}  // namespace
}  // namespace ztcp::msg
