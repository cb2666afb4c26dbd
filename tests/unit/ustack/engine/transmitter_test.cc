// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/transmitter.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/link/mesh_link.h"

namespace ztcp::ustack {
namespace {

constexpr TimePoint kNow{std::chrono::seconds(1)};

// Accepts `takes` frames and records their payload.
class NarrowLink final : public link::Link {
 public:
  const link::LinkCapabilities& capabilities() const override { return caps; }
  std::size_t receive(std::span<RxFrame>) override { return 0; }
  void release(std::span<RxFrame>) override {}
  std::size_t transmit(std::span<const TxFrame> frames) override {
    const std::size_t taken = std::min(takes, frames.size());
    takes -= taken;
    offered = std::max(offered, frames.size());
    for (const TxFrame& frame : frames.first(taken)) {
      std::string& bytes = sent.emplace_back();
      for (std::size_t i = 0; i < frame.fragment_count; ++i)
        bytes.append(reinterpret_cast<const char*>(frame.fragments[i].data),
                     frame.fragments[i].size_bytes);
    }
    return taken;
  }
  link::TransmitRoom transmit_room(TimePoint) override { return room; }
  LinkState state() override { return LinkState::kUp; }
  std::uint32_t map_memory(const void*, std::size_t) override { return 1; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return none; }
  std::string describe() const override { return "narrow"; }

  link::LinkCapabilities caps{.mac = {}, .max_super_segment_bytes = 60'000};
  link::LinkCounters none;
  link::TransmitRoom room;
  std::size_t takes = SIZE_MAX;
  std::size_t offered = 0;
  std::vector<std::string> sent;
};

// Stands in for a Stack: has frames to send, each with two fragments of user memory.
struct Source {
  void queue(const std::string& text, bool repeat) {
    texts.push_back(text);
    TxFrame frame{};
    frame.header_bytes = 54;
    frame.copy_payload = repeat;
    frame.fragment_count = 2;
    const auto half = static_cast<std::uint32_t>(text.size() / 2);
    const auto* bytes = reinterpret_cast<const std::byte*>(texts.back().data());
    frame.fragments[0] = {bytes, half, 1};
    frame.fragments[1] = {bytes + half, static_cast<std::uint32_t>(text.size()) - half, 1};
    frame.payload_bytes = static_cast<std::uint32_t>(text.size());
    frames.push_back(frame);
  }
  std::size_t collect(TimePoint, std::span<TxFrame> out) {
    const std::size_t count = std::min(out.size(), frames.size());
    std::copy_n(frames.begin(), count, out.begin());
    frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  void scribble() {
    for (std::string& text : texts) std::fill(text.begin(), text.end(), '#');
  }
  std::deque<std::string> texts;
  std::deque<TxFrame> frames;
};

struct TransmitterTest : testing::Test {
  NarrowLink link;
  Source source;
  Transmitter transmitter{link.caps.max_super_segment_bytes};
};

TEST_F(TransmitterTest, CollectsNoMoreFramesThanTheLinkHasRoomFor) {
  for (int i = 0; i < 100; ++i) source.queue("data", false);
  link.room.frames = 5;
  link.takes = 5;
  EXPECT_TRUE(transmitter.run(source, link, kNow));
  EXPECT_EQ(source.frames.size(), 95U);
  EXPECT_EQ(transmitter.refusals(), 0U);
  link.room.frames = 0;
  EXPECT_FALSE(transmitter.run(source, link, kNow));
  EXPECT_EQ(source.frames.size(), 95U);
  link.room.frames = link.takes = SIZE_MAX;
  transmitter.run(source, link, kNow);
  EXPECT_EQ(link.sent.size(), 100U);
  EXPECT_EQ(link.offered, Transmitter::kBurst) << "in bursts, not one by one";
}

TEST_F(TransmitterTest, SendsALimitedNumberOfFramesInATurn) {
  for (std::size_t i = 0; i < 2 * Transmitter::kFramesPerTurn; ++i) source.queue("data", false);
  transmitter.run(source, link, kNow);
  EXPECT_EQ(source.frames.size(), Transmitter::kFramesPerTurn);
}

TEST_F(TransmitterTest, BytesBeyondTheLimitStayInTheStack) {
  link.room.tells_bytes = true;
  const std::string large(60'000, 'x');
  for (int i = 0; i < 32; ++i) source.queue(large, false);
  transmitter.run(source, link, kNow);
  const std::uint64_t limit = transmitter.limit().limit_bytes();
  EXPECT_GE(link.sent.size() * large.size(), limit - large.size());
  EXPECT_LE(link.sent.size() * large.size(), limit + large.size())
      << "at most one frame beyond the limit";
}

// An ACK of the first copy releases the memory while the retransmission waits, and the owner reuses
// it.
TEST_F(TransmitterTest, RefusedRetransmissionKeepsItsPayload) {
  source.queue("first", false);
  source.queue("again", true);
  source.queue("third", true);
  link.takes = 1;
  EXPECT_TRUE(transmitter.run(source, link, kNow));
  source.scribble();
  link.takes = 0;
  EXPECT_FALSE(transmitter.run(source, link, kNow));
  link.takes = SIZE_MAX;
  EXPECT_TRUE(transmitter.run(source, link, kNow));
  EXPECT_EQ(link.sent, (std::vector<std::string>{"first", "again", "third"}));
  EXPECT_EQ(transmitter.refusals(), 2U);
}

// A session failed and its user reuses the memory, while its frames still wait for the link.
TEST_F(TransmitterTest, DetachedPayloadIsIndependentOfUserMemory) {
  const std::string super(60'000, 's');
  source.queue("plain", false);
  source.queue(super, false);
  link.takes = 0;
  transmitter.run(source, link, kNow);
  transmitter.detach_payload();
  source.scribble();
  transmitter.detach_payload();
  link.takes = SIZE_MAX;
  transmitter.run(source, link, kNow);
  EXPECT_EQ(link.sent, (std::vector<std::string>{"plain", super}));
  // Again, in the same slots.
  source.queue("later", false);
  link.takes = 0;
  transmitter.run(source, link, kNow);
  transmitter.detach_payload();
  source.scribble();
  link.takes = SIZE_MAX;
  transmitter.run(source, link, kNow);
  EXPECT_EQ(link.sent.back(), "later");
}

// The mesh's timeout for a peer runs on while frames to that peer wait in the Transmitter.
TEST(Transmitter, StoppedPeerOfAMeshBlocksOthersOnlyUntilItsTimeout) {
  constexpr MacAddress kStopped{{2, 0, 0, 0, 0, 1}};
  constexpr MacAddress kRunning{{2, 0, 0, 0, 0, 2}};
  auto stopped = std::make_unique<NarrowLink>();
  auto running = std::make_unique<NarrowLink>();
  stopped->takes = 0;
  const std::vector<std::string>& arrived = running->sent;
  std::vector<link::MeshPort> ports;
  ports.push_back({kStopped, std::move(stopped)});
  ports.push_back({kRunning, std::move(running)});
  const auto mesh = link::make_mesh(std::move(ports));
  Source source;
  source.queue("to the one that is stopped", false);
  source.queue("to the one that runs", false);
  const auto address = [&](std::size_t frame, const MacAddress& to) {
    std::memcpy(source.frames[frame].header.data(), to.bytes.data(), to.bytes.size());
  };
  address(0, kStopped);
  address(1, kRunning);
  Transmitter transmitter(mesh->capabilities().mtu_bytes);
  transmitter.run(source, *mesh, kNow);
  transmitter.run(source, *mesh, kNow + link::kMeshStallTimeout / 2);
  EXPECT_TRUE(arrived.empty()) << "the stopped peer may only be busy";
  transmitter.run(source, *mesh, kNow + link::kMeshStallTimeout);
  EXPECT_EQ(arrived, std::vector<std::string>{"to the one that runs"});
}

}  // namespace
}  // namespace ztcp::ustack
