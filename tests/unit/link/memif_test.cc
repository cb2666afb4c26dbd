// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two memif links of this process, joined through a socket in a folder of their own.
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/unit/link/frames.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"

namespace ztcp::link {
namespace {

using test::flatten;
using test::SentFrame;

// Bounds every wait for another thread or process; never a matter of passing by luck.
template <class Condition>
bool within_seconds(int seconds, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class Memif : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    EalConfig config;
    config.node_memory_mib = {320};
    ASSERT_TRUE(start_eal(config));
    register_poller_thread();
  }

  void SetUp() override {
    std::string pattern = testing::TempDir() + "memifXXXXXX";
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
    return within_seconds(5, [&] {
      std::array<RxFrame, 1> none;
      a.release(std::span(none).first(a.receive(none)));
      b.release(std::span(none).first(b.receive(none)));
      return a.is_up() && b.is_up();
    });
  }

  std::string folder_;
};

void expect_exchanged(Link& from, Link& to, SentFrame& sent) {
  ASSERT_EQ(from.transmit({&sent.frame(), 1}), 1U);
  sent.scribble();  // memif is done with the payload when transmit() returns.
  std::array<RxFrame, 4> received;
  ASSERT_EQ(to.receive(received), 1U);
  EXPECT_GE(received[0].head.size(), std::min<std::size_t>(118, sent.bytes().size()));
  EXPECT_EQ(flatten(received[0]), sent.bytes());
  to.release(std::span(received).first(1));
}

TEST_F(Memif, ReportsWhatItCanDo) {
  auto server = open_memif(config(MemifRole::kServer, 9000));
  ASSERT_TRUE(server);
  const LinkCapabilities& can = (*server)->capabilities();
  EXPECT_EQ(can.mtu_bytes, 9000);
  EXPECT_EQ(can.mac, config(MemifRole::kServer, 9000).mac);
  EXPECT_TRUE(can.zero_copy);
  EXPECT_FALSE(can.tx_checksum);
  EXPECT_FALSE(can.rx_checksum);
  EXPECT_EQ(can.max_super_segment_bytes, 0U);
  EXPECT_FALSE((*server)->is_up());
}

TEST_F(Memif, ComesAndGoesManyTimes) {
  for (int i = 0; i < 40; ++i) {
    auto server = open_memif(config(MemifRole::kServer, 1500));
    auto client = open_memif(config(MemifRole::kClient, 1500));
    ASSERT_TRUE(server && client) << i;
    if (i % 4 == 3) continue;  // Gone again while the two are still shaking hands.
    ASSERT_TRUE(both_up(**server, **client)) << i;
    SentFrame sent(static_cast<std::uint32_t>(i), 1000, 3);
    expect_exchanged(**client, **server, sent);
    // Either side may be the first to go.
    if (i % 2 == 0) {
      client->reset();
    } else {
      server->reset();
    }
  }
}

class MemifMtu : public Memif, public testing::WithParamInterface<int> {};

TEST_P(MemifMtu, CarriesEverySizeInAnyNumberOfFragments) {
  const auto mtu = static_cast<std::uint16_t>(GetParam());
  auto server = open_memif(config(MemifRole::kServer, mtu));
  ASSERT_TRUE(server);
  auto client = open_memif(config(MemifRole::kClient, mtu));
  ASSERT_TRUE(client);
  ASSERT_TRUE(both_up(**server, **client));
  const std::size_t largest = std::size_t{mtu} + 14;
  // Every size near both ends, and a stride that is coprime to every alignment between.
  for (std::size_t size = 60; size <= largest;
       size += size < 400 || size + 400 > largest ? 1 : largest / 251 | 1) {
    const auto seed = static_cast<std::uint32_t>(size);
    SentFrame there(seed, size, size <= 128 && size % 2 == 0 ? 0 : 1 + size % 8);
    expect_exchanged(**server, **client, there);
    SentFrame back(~seed, size, 1 + size % 8, (*client)->map_memory(&there, 1));
    expect_exchanged(**client, **server, back);
    if (HasFatalFailure()) FAIL() << "at size " << size;
  }
  EXPECT_EQ((*server)->counters().tx_dropped, 0U);
  EXPECT_EQ((*server)->counters().rx_frames, (*client)->counters().tx_frames);
  EXPECT_EQ((*server)->counters().rx_bytes, (*client)->counters().tx_bytes);
}

INSTANTIATE_TEST_SUITE_P(Sizes, MemifMtu, testing::Values(1500, 9000, int{kMaxMemifMtuBytes}),
                         [](const auto& row) { return "mtu" + std::to_string(row.param); });

TEST_F(Memif, DropsWhatIsLargerThanTheMtu) {
  auto server = open_memif(config(MemifRole::kServer, 1500));
  auto client = open_memif(config(MemifRole::kClient, 1500));
  ASSERT_TRUE(server && client);
  ASSERT_TRUE(both_up(**server, **client));
  SentFrame large(1, 1515, 2);
  EXPECT_EQ((*client)->transmit({&large.frame(), 1}), 1U);
  EXPECT_EQ((*client)->counters().tx_dropped, 1U);
  SentFrame fits(2, 1514, 2);
  expect_exchanged(**client, **server, fits);
}

}  // namespace
}  // namespace ztcp::link
