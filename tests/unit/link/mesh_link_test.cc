// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/mesh_link.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "transport/link/memory_link.h"

namespace ztcp::link {
namespace {

using namespace std::chrono_literals;
using test::flatten;
using test::SentFrame;

constexpr TimePoint kStart{1s};

// Three NICs, each joined to each; mesh(0) is the one under test.
class Mesh : public testing::Test {
 protected:
  static constexpr std::uint32_t kFrames = 8;

  static MacAddress mac(std::size_t nic) {
    return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(nic + 1)}};
  }

  Mesh() {
    std::array<std::vector<MeshPort>, 3> ports;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = i + 1; j < 3; ++j) {
        MemoryLinkOptions options;
        options.frames = kFrames;
        options.macs = {mac(i), mac(j)};
        options.states = {&carriers_[i + j - 1], &carriers_[i + j - 1]};
        auto [here, there] = make_memory_links(options);
        ports[i].push_back({mac(j), std::move(here)});
        ports[j].push_back({mac(i), std::move(there)});
      }
    }
    for (std::size_t i = 0; i < 3; ++i) nics_[i] = make_mesh(std::move(ports[i]));
    nics_[0]->transmit_room(kStart);
  }

  static SentFrame frame_to(std::size_t nic, std::uint32_t seed) {
    return frame_to(mac(nic), seed);
  }
  static SentFrame frame_to(MacAddress to, std::uint32_t seed) {
    SentFrame sent(seed, 200, 1);
    std::memcpy(sent.frame().header.data(), to.bytes.data(), to.bytes.size());
    return sent;
  }

  // All frames that a NIC has received, without their addresses.
  using Frames = std::vector<std::vector<std::byte>>;
  Frames take(std::size_t nic) {
    Frames all;
    std::array<RxFrame, 4> frames;
    while (const std::size_t count = nics_[nic]->receive(frames)) {
      for (const RxFrame& frame : std::span(frames).first(count)) {
        all.push_back(flatten(frame));
        all.back().erase(all.back().begin(), all.back().begin() + 6);
      }
      nics_[nic]->release(std::span(frames).first(count));
    }
    return all;
  }
  static std::vector<std::byte> contents(const SentFrame& sent) {
    return {sent.bytes().begin() + 6, sent.bytes().end()};
  }

  std::array<std::atomic<LinkState>, 3> carriers_{};  // Links 0-1, 0-2 and 1-2.
  std::array<std::unique_ptr<Link>, 3> nics_;
};

TEST_F(Mesh, SendsEachFrameToItsPeerAlone) {
  std::array sent = {frame_to(1, 1), frame_to(1, 2), frame_to(2, 3), frame_to(1, 4)};
  std::vector<TxFrame> burst;
  for (SentFrame& one : sent) burst.push_back(one.frame());
  ASSERT_EQ(nics_[0]->transmit(burst), 4U);
  EXPECT_EQ(take(1), (Frames{contents(sent[0]), contents(sent[1]), contents(sent[3])}));
  EXPECT_EQ(take(2), Frames{contents(sent[2])});
  EXPECT_EQ(nics_[0]->counters().tx_frames, 4U);
}

TEST_F(Mesh, BroadcastsToAll) {
  SentFrame sent = frame_to(kBroadcastMac, 5);
  ASSERT_EQ(nics_[0]->transmit({&sent.frame(), 1}), 1U);
  EXPECT_EQ(take(1), Frames{contents(sent)});
  EXPECT_EQ(take(2), Frames{contents(sent)});
}

TEST_F(Mesh, ReceivesFromAllInTurnAndGivesEachFrameBackToItsPort) {
  for (int round = 0; round < 100; ++round) {
    SentFrame one = frame_to(0, 1);
    SentFrame two = frame_to(0, 2);
    const std::vector<TxFrame> from_1(kFrames, one.frame());
    const std::vector<TxFrame> from_2(kFrames, two.frame());
    ASSERT_EQ(nics_[1]->transmit(from_1), kFrames);
    ASSERT_EQ(nics_[2]->transmit(from_2), kFrames);
    // Kept frames of both ports, given back among each other.
    std::array<RxFrame, 2 * kFrames> frames;
    std::size_t count = 0;
    while (const std::size_t got = nics_[0]->receive(
               std::span(frames).subspan(count, std::min<std::size_t>(3, frames.size() - count))))
      count += got;
    ASSERT_EQ(count, frames.size());
    std::stable_sort(frames.begin(), frames.end(),
                     [](const RxFrame& a, const RxFrame& b) { return a.head[20] < b.head[20]; });
    std::rotate(frames.begin(), frames.begin() + 5, frames.end());
    nics_[0]->release(frames);
  }
}

TEST_F(Mesh, ABusyPeerDoesNotStarveTheOthers) {
  SentFrame noise = frame_to(0, 1);
  SentFrame word = frame_to(0, 2);
  ASSERT_EQ(nics_[2]->transmit({&word.frame(), 1}), 1U);
  bool heard = false;
  for (int call = 0; call < 2; ++call) {
    const std::vector<TxFrame> burst(4, noise.frame());
    nics_[1]->transmit(burst);
    std::array<RxFrame, 2> frames;
    const std::size_t count = nics_[0]->receive(frames);
    for (const RxFrame& frame : std::span(frames).first(count))
      heard |= flatten(frame)[100] == word.bytes()[100];
    nics_[0]->release(std::span(frames).first(count));
  }
  EXPECT_TRUE(heard);
}

TEST_F(Mesh, WaitsForAPeerWhoseRingIsFullAndDropsNothing) {
  SentFrame slow = frame_to(1, 1);
  SentFrame other = frame_to(2, 2);
  std::vector<TxFrame> burst(kFrames + 2, slow.frame());
  burst.push_back(other.frame());
  EXPECT_EQ(nics_[0]->transmit(burst), kFrames);
  nics_[0]->transmit_room(kStart + kMeshStallTimeout - 1ns);
  EXPECT_EQ(nics_[0]->transmit(std::span(burst).subspan(kFrames)), 0U);
  EXPECT_EQ(take(1).size(), kFrames);
  EXPECT_EQ(nics_[0]->transmit(std::span(burst).subspan(kFrames)), 3U);
  EXPECT_EQ(take(1).size(), 2U);
  EXPECT_EQ(take(2).size(), 1U);
  EXPECT_EQ(nics_[0]->counters().tx_dropped, 0U);
}

TEST_F(Mesh, AStoppedPeerDoesNotHoldUpTheOthers) {
  SentFrame stopped = frame_to(1, 1);
  SentFrame other = frame_to(2, 2);
  std::vector<TxFrame> burst(kFrames + 1, stopped.frame());
  burst.push_back(other.frame());
  EXPECT_EQ(nics_[0]->transmit(burst), kFrames);
  nics_[0]->transmit_room(kStart + kMeshStallTimeout);
  const std::span rest = std::span(burst).subspan(kFrames);
  EXPECT_EQ(nics_[0]->transmit(rest), 2U);
  EXPECT_EQ(nics_[0]->counters().tx_dropped, 1U);
  // From now on frames are dropped at once, until the peer takes one; then it is waited for again.
  EXPECT_EQ(nics_[0]->transmit(rest), 2U);
  EXPECT_EQ(take(2).size(), 2U);
  EXPECT_EQ(take(1).size(), kFrames);
  EXPECT_EQ(nics_[0]->transmit(burst), kFrames);
  EXPECT_EQ(nics_[0]->counters().tx_dropped, 2U);
}

TEST_F(Mesh, ABroadcastThatAnAbsentPeerMissesIsNoLoss) {
  carriers_[0] = LinkState::kDown;
  SentFrame who = frame_to(kBroadcastMac, 1);
  EXPECT_EQ(nics_[0]->transmit({&who.frame(), 1}), 1U);
  EXPECT_EQ(take(2).size(), 1U);
  EXPECT_EQ(nics_[0]->counters().tx_dropped, 0U);
}

// A peer that sleeps between two polls of its ring is present.
TEST(MeshStallTimeout, IsTheConfiguredTime) {
  for (const Duration timeout : {Duration(kMeshStallTimeout), Duration(200ms)}) {
    MemoryLinkOptions options;
    options.frames = 1;
    auto [here, there] = make_memory_links(options);
    auto [also_here, other] = make_memory_links(options);
    constexpr MacAddress kAsleep{{2, 0, 0, 0, 0, 2}};
    std::vector<MeshPort> ports;
    ports.push_back({kAsleep, std::move(here)});
    ports.push_back({{{2, 0, 0, 0, 0, 3}}, std::move(also_here)});
    const auto mesh = make_mesh(std::move(ports), timeout);
    mesh->transmit_room(kStart);
    SentFrame sent(1, 200, 1);
    std::memcpy(sent.frame().header.data(), kAsleep.bytes.data(), kAsleep.bytes.size());
    const std::vector<TxFrame> two(2, sent.frame());
    ASSERT_EQ(mesh->transmit(two), 1U);
    mesh->transmit_room(kStart + timeout - 1ns);
    EXPECT_EQ(mesh->transmit(std::span(two).first(1)), 0U);
    mesh->transmit_room(kStart + timeout);
    EXPECT_EQ(mesh->transmit(std::span(two).first(1)), 1U);
    EXPECT_EQ(mesh->counters().tx_dropped, 1U);
  }
}

// No other peer can suffer.
TEST(MeshStallTimeout, IsUnlimitedForASinglePeer) {
  MemoryLinkOptions options;
  options.frames = 1;
  auto [here, there] = make_memory_links(options);
  std::vector<MeshPort> ports;
  ports.push_back({options.macs[1], std::move(here)});
  const auto mesh = make_mesh(std::move(ports));
  SentFrame sent(1, 200, 1);
  std::memcpy(sent.frame().header.data(), options.macs[1].bytes.data(), 6);
  ASSERT_EQ(mesh->transmit({&sent.frame(), 1}), 1U);
  for (const Duration later : {Duration(0), Duration(1s), Duration(60s)}) {
    mesh->transmit_room(kStart + later);
    EXPECT_EQ(mesh->transmit({&sent.frame(), 1}), 0U);
  }
  EXPECT_EQ(mesh->counters().tx_dropped, 0U);
}

TEST_F(Mesh, AFrameForAnUnknownMacIsDropped) {
  SentFrame sent = frame_to(MacAddress{{2, 0, 0, 0, 0, 9}}, 1);
  EXPECT_EQ(nics_[0]->transmit({&sent.frame(), 1}), 1U);
  EXPECT_EQ(nics_[0]->counters().tx_dropped, 1U);
}

TEST_F(Mesh, IsUpWhileOnePeerCanBeReached) {
  EXPECT_EQ(nics_[0]->state(), LinkState::kUp);
  carriers_[0] = LinkState::kDown;
  EXPECT_EQ(nics_[0]->state(), LinkState::kUp);
  SentFrame lost = frame_to(1, 1);
  EXPECT_EQ(nics_[0]->transmit({&lost.frame(), 1}), 1U);
  EXPECT_EQ(nics_[0]->counters().tx_dropped, 1U);
  carriers_[1] = LinkState::kDown;
  EXPECT_EQ(nics_[0]->state(), LinkState::kDown);
}

TEST_F(Mesh, ReceivesWithAllKept) {
  SentFrame sent = frame_to(0, 1);
  test::expect_it_receives_with_all_kept(*nics_[0], [&] {
    ASSERT_EQ(nics_[1]->transmit({&sent.frame(), 1}), 1U);
  });
}

}  // namespace
}  // namespace ztcp::link
