// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/loopback_link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

constexpr MacAddress kOwn{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kOther{{2, 0, 0, 0, 0, 2}};

// Counts the frames sent to the device and delivers frames that the test put in.
class FakeLink final : public link::Link {
 public:
  FakeLink() {
    caps.mac = kOwn;
    caps.mtu_bytes = 1500;
  }
  const link::LinkCapabilities& capabilities() const override { return caps; }
  std::size_t receive(std::span<RxFrame> frames) override {
    std::size_t n = 0;
    while (n < frames.size() && !arrived.empty()) {
      frames[n] = RxFrame{};
      frames[n++].handle = arrived.front();
      arrived.pop_front();
    }
    return n;
  }
  void release(std::span<RxFrame> frames) override {
    for (const RxFrame& f : frames) {
      if (!f.kept) released.push_back(f.handle);
    }
  }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    const std::size_t n = std::min(frames.size(), ring);
    ring -= n;
    sent += n;
    return n;
  }
  LinkState state() override { return LinkState::kUp; }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return none; }
  std::string describe() const override { return "fake"; }

  link::LinkCapabilities caps;
  link::LinkCounters none;
  std::deque<void*> arrived;
  std::vector<void*> released;
  std::size_t ring = 1000;
  std::size_t sent = 0;
};

TxFrame frame_to(const MacAddress& mac, std::span<const std::byte> payload = {}) {
  TxFrame f{};
  std::memcpy(f.header.data(), mac.bytes.data(), mac.bytes.size());
  f.header_bytes = 54;
  if (!payload.empty()) {
    f.fragment_count = 1;
    f.fragments[0] = {payload.data(), static_cast<std::uint32_t>(payload.size()), kUnmapped};
    f.payload_bytes = static_cast<std::uint32_t>(payload.size());
  }
  return f;
}

struct LoopbackTest : testing::Test {
  LoopbackTest() {
    auto owned = std::make_unique<FakeLink>();
    inner = owned.get();
    link = with_loopback(std::move(owned), kHeldFrames * 1518, tap);
  }
  static constexpr std::size_t kHeldFrames = 600;
  std::shared_ptr<stats::CaptureTap> tap = std::make_shared<stats::CaptureTap>();
  FakeLink* inner = nullptr;
  std::unique_ptr<link::Link> link;
  std::array<RxFrame, 8> rx{};
};

TEST_F(LoopbackTest, OwnFramesComeBackWithTheirPayload) {
  const std::vector payload(100, std::byte{0x5a});
  TxFrame frame = frame_to(kOwn, payload);
  frame.checksum_offload = true;
  EXPECT_EQ(link->transmit({&frame, 1}), 1U);
  EXPECT_EQ(inner->sent, 0U);

  ASSERT_EQ(link->receive(rx), 1U);
  ASSERT_EQ(rx[0].head.size(), 154U);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), rx[0].head.begin() + 54));
  EXPECT_TRUE(rx[0].checksum_good);
  link->release(std::span(rx).first(1));
  EXPECT_TRUE(inner->released.empty());
}

TEST_F(LoopbackTest, FullRingSplitsAMixedBurstAtAPrefix) {
  const std::array frames = {frame_to(kOther), frame_to(kOwn), frame_to(kOther), frame_to(kOther),
                             frame_to(kOwn)};
  inner->ring = 2;
  EXPECT_EQ(link->transmit(frames), 3U);  // other, own, other; then the ring is full.
  EXPECT_EQ(inner->sent, 2U);
  EXPECT_EQ(link->receive(rx), 1U);
}

TEST_F(LoopbackTest, DeviceFramesAreReleasedToTheDevice) {
  int device_frame = 0;
  inner->arrived.push_back(&device_frame);
  const TxFrame own = frame_to(kOwn);
  ASSERT_EQ(link->transmit({&own, 1}), 1U);
  ASSERT_EQ(link->receive(rx), 2U);
  link->release(std::span(rx).first(2));
  EXPECT_EQ(inner->released, std::vector<void*>{&device_frame});
}

TEST_F(LoopbackTest, AHeldFrameKeepsItsBytes) {
  const std::vector payload(100, std::byte{0x5a});
  const TxFrame first = frame_to(kOwn, payload);
  ASSERT_EQ(link->transmit({&first, 1}), 1U);
  std::array<RxFrame, 1> held;
  ASSERT_EQ(link->receive(held), 1U);
  held[0].kept = true;
  link->release(held);
  const TxFrame next = frame_to(kOwn);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(link->transmit({&next, 1}), 1U);
    ASSERT_EQ(link->receive(std::span(rx).first(1)), 1U);
    link->release(std::span(rx).first(1));
  }
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), held[0].head.begin() + 54));
}

// The receiver holds all frames behind a gap, so the frame that closes the gap must still get a
// slot: otherwise neither it nor any frame to other hosts would ever leave.
TEST_F(LoopbackTest, HeldFramesLeaveRoomForTheMissingOne) {
  const TxFrame own = frame_to(kOwn);
  for (std::size_t held = 0; held < kHeldFrames; ++held) {
    ASSERT_EQ(link->transmit({&own, 1}), 1U) << held;
    ASSERT_EQ(link->receive(std::span(rx).first(1)), 1U);
    rx[0].kept = true;
    link->release(std::span(rx).first(1));
  }
  EXPECT_EQ(link->transmit({&own, 1}), 1U);
}

TEST_F(LoopbackTest, OwnAndDeviceFramesShareEachBurst) {
  std::array<int, 100> device_frames{};
  for (int& frame : device_frames) inner->arrived.push_back(&frame);
  const TxFrame own = frame_to(kOwn);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(link->transmit({&own, 1}), 1U);
  for (int burst = 0; burst < 10; ++burst) {
    ASSERT_EQ(link->receive(rx), rx.size());
    std::size_t of_device = 0;
    for (const RxFrame& frame : rx) of_device += frame.head.empty() ? 1U : 0U;
    EXPECT_EQ(of_device, rx.size() / 2);
    link->release(rx);
  }
  inner->arrived.clear();
  ASSERT_EQ(link->receive(rx), rx.size()) << "own frames fill the room that the device leaves";
  link->release(rx);
}

// The stack then makes no frame that would wait here, in front of frames for the device.
TEST_F(LoopbackTest, TransmitRoomShrinksAsTheQueueFills) {
  const TxFrame own = frame_to(kOwn);
  for (std::size_t room = link->transmit_room({}).frames; room > 0; --room) {
    ASSERT_EQ(link->transmit_room({}).frames, room);
    ASSERT_EQ(link->transmit({&own, 1}), 1U);
  }
  EXPECT_EQ(link->transmit({&own, 1}), 0U);
  // Room comes back with each received frame.
  ASSERT_EQ(link->receive(rx), rx.size());
  EXPECT_EQ(link->transmit_room({}).frames, rx.size());
  link->release(rx);
}

TEST_F(LoopbackTest, FullQueueRefusesFramesUntilOneIsReceived) {
  const TxFrame own = frame_to(kOwn);
  std::size_t sent = 0;
  while (link->transmit({&own, 1}) == 1) ASSERT_LT(++sent, 10'000U);
  ASSERT_EQ(link->receive(std::span(rx).first(1)), 1U);
  EXPECT_EQ(link->transmit({&own, 1}), 1U);
  EXPECT_EQ(link->transmit({&own, 1}), 0U);
}

// A frame that the ring refused is offered again, and recorded when the link takes it.
TEST_F(LoopbackTest, CaptureHasEachFrameThatTheLinkTookOrDelivered) {
  stats::CaptureLaneState state;
  std::vector<std::byte> ring(1U << 16);
  const stats::CaptureCursor cursor;
  stats::CaptureWriter writer(state, ring, cursor, 0);
  ASSERT_TRUE(tap->attach(writer));
  const std::array frames{frame_to(kOther), frame_to(kOwn), frame_to(kOther)};
  inner->ring = 1;
  EXPECT_EQ(link->transmit(frames), 2U);
  EXPECT_EQ(state.recorded, 2U);
  inner->ring = 1;
  EXPECT_EQ(link->transmit(std::span(frames).subspan(2)), 1U);
  EXPECT_EQ(state.recorded, 3U);
  inner->arrived.push_back(&inner);
  EXPECT_EQ(link->receive(rx), 2U);  // The device's and the looped one.
  EXPECT_EQ(state.recorded, 5U);
  tap->detach(writer);
}

}  // namespace
}  // namespace ztcp::ustack
