// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Keeps received frames up to the link's limits, like a stack that waits for one lost frame. The
// missing frame must still be received.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/link/within_seconds.h"
#include "transport/link/link.h"

namespace ztcp::link::test {

// `send` makes one frame arrive at `link`.
inline void expect_it_receives_with_all_kept(Link& link, const std::function<void()>& send) {
  const LinkCapabilities& caps = link.capabilities();
  const auto receive_one = [&](RxFrame& frame) {
    send();
    // Others may send unsolicited frames; ours is not far behind.
    return within_seconds(1, [&] { return link.receive({&frame, 1}) == 1; });
  };
  ASSERT_GT(caps.max_kept_frames, 0U);
  std::vector<RxFrame> kept;
  std::size_t bytes = 0;
  RxFrame frame;
  for (;;) {
    ASSERT_TRUE(receive_one(frame)) << kept.size() << " frames of " << bytes << " bytes are kept";
    ASSERT_GT(frame.charge_bytes, 0U);
    if (kept.size() == caps.max_kept_frames || bytes + frame.charge_bytes > caps.max_kept_bytes)
      break;
    bytes += frame.charge_bytes;
    kept.push_back(frame);
  }
  link.release({&frame, 1});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(receive_one(frame)) << i;
    link.release({&frame, 1});
  }
  link.release(kept);
}

}  // namespace ztcp::link::test
