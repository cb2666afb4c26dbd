// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/link_timeout.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using namespace std::chrono_literals;

TEST(LinkTimeout, CountsFromWhenTheLinkWentDown) {
  LinkTimeout timeout;
  timeout.set_limit(20s);
  const LinkTimeout::At begun{};
  EXPECT_FALSE(timeout.is_over(begun, /*is_up=*/true));
  EXPECT_FALSE(timeout.is_over(begun + 50s, /*is_up=*/false)) << "the link was up for these 50 s";
  EXPECT_FALSE(timeout.is_over(begun + 69s, /*is_up=*/false));
  EXPECT_FALSE(timeout.is_over(begun + 71s, /*is_up=*/true)) << "the link is up again";
  EXPECT_FALSE(timeout.is_over(begun + 72s, /*is_up=*/false));
  EXPECT_TRUE(timeout.is_over(begun + 92s, /*is_up=*/false));
}

TEST(LinkTimeout, ExpiresForALinkThatIsDownFromTheStart) {
  LinkTimeout timeout;
  timeout.set_limit(10ms);
  const LinkTimeout::At begun{};
  EXPECT_FALSE(timeout.is_over(begun, /*is_up=*/false));
  EXPECT_TRUE(timeout.is_over(begun + 10ms, /*is_up=*/false));
}

}  // namespace
}  // namespace ztcp::comms
