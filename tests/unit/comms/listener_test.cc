// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/listener.h"

#include <thread>

#include <gtest/gtest.h>

#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::comms {
namespace {

using namespace test;
using ustack::TwoHosts;

TEST(Listener, ClosingResetsSessionsThatWereNotAccepted) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  auto sender = hosts[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_TRUE(sender);
  while (true) {
    const auto ready = (*sender)->is_ready();
    ASSERT_TRUE(ready);
    if (*ready) break;
    std::this_thread::yield();
  }
  listener->reset();
  const Bytes bytes(8);
  Request* request = post_until_taken(**sender, bytes, nullptr);
  if (request != nullptr) {
    // The few bytes may have been received before the reset; then the next message fails.
    const auto first = finish(*request);
    if (first) {
      const Bytes large(1U << 20U);
      request = post_until_taken(**sender, large, nullptr);
      if (request != nullptr) {
        EXPECT_FALSE(finish(*request));
      }
    }
  }
}

TEST(Listener, HandleOfAClosedListenerIsRefused) {
  TwoHosts hosts;
  PeerHandle stale;
  {
    auto listener = hosts[1].listen(0, {});
    ASSERT_TRUE(listener);
    stale = (*listener)->handle();
  }
  auto sender = hosts[0].begin_connect(0, stale, {});
  ASSERT_TRUE(sender);
  auto ready = (*sender)->is_ready();
  while (ready && !*ready) {
    std::this_thread::yield();
    ready = (*sender)->is_ready();
  }
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kRefused);
}

}  // namespace
}  // namespace ztcp::comms
