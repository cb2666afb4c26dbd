// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memif links of this process, joined through a socket in a folder of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/link/frames.h"
#include "tests/unit/link/peer.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"

namespace ztcp::link {

using test::flatten;
using test::SentFrame;
using test::within_seconds;

class Memif : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    EalConfig config;
    config.node_memory_mib = {320};
    ASSERT_TRUE(start_eal(config));
    register_poller_thread();
  }

  void SetUp() override {
    // With "/0.sock" the longest path that the kernel accepts; DPDK's message to other processes is
    // shorter.
    std::string pattern = testing::TempDir().append(94 - testing::TempDir().size(), 'm') + "XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  MemifConfig config(MemifRole role, std::uint16_t mtu_bytes) const {
    MemifConfig c;
    c.socket_path = folder_ + "/0.sock";
    c.role = role;
    c.mac = {{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(role)}};
    c.mtu_bytes = mtu_bytes;
    return c;
  }

  static bool both_up(Link& a, Link& b) {
    return within_seconds(30, [&] {
      std::array<RxFrame, 1> none;
      a.release(std::span(none).first(a.receive(none)));
      b.release(std::span(none).first(b.receive(none)));
      return a.is_up() && b.is_up();
    });
  }

  // Sends `sent` until it comes back: the peer may have become ready only now.
  static bool echoed(Link& link, SentFrame& sent) {
    bool same = false;
    return within_seconds(60, [&] {
      std::array<RxFrame, 32> received;
      if (!same) link.transmit({&sent.frame(), 1});
      const std::size_t count = link.receive(received);
      for (std::size_t i = 0; i < count; ++i) same = same || flatten(received[i]) == sent.bytes();
      link.release(std::span(received).first(count));
      return same;
    });
  }

  std::string folder_;
};

}  // namespace ztcp::link
