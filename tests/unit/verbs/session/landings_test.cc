// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sessions let a peer's bytes over a rail of TCP land only where they are expected, for any record
// of the peer.
#include <array>

#include <gtest/gtest.h>

#include "transport/verbs/session/recv_session.h"
#include "transport/verbs/session/send_session.h"

namespace ztcp::verbs {
namespace {

using Kind = StreamRecord::Kind;

class NoQueues final : public WorkQueues {
 public:
  Status post(std::uint32_t, const WorkRequest&) override { return {}; }
  Status post_receives(std::uint32_t, std::uint32_t) override { return {}; }
};

class ReceiversLandings : public testing::Test {
 protected:
  static constexpr std::uint32_t kSize = 1000;

  // A buffer of host memory in slot 0, and one of GPU memory in slot 1.
  ReceiversLandings() {
    const std::array<RecvSession::Buffer, 2> buffers{
        {{.address = address_of(host_), .size_bytes = kSize},
         {.address = address_of(gpu_), .size_bytes = kSize, .tag = 1, .flags = 0}}};
    EXPECT_TRUE(session_.post(buffers));
  }
  static std::uint64_t address_of(const std::array<std::byte, kSize>& memory) {
    return reinterpret_cast<std::uint64_t>(memory.data());
  }
  StreamRecord piece(std::uint64_t offset, std::uint32_t size,
                     const Immediate& of = {.slot = 0, .sequence = 1}) const {
    return {.kind = Kind::kPiece,
            .size_bytes = size,
            .remote = address_of(host_) + offset,
            .immediate = encode(of)};
  }
  bool takes(const StreamRecord& record) const { return session_.place(record).has_value(); }

  std::array<std::byte, kSize> host_{};
  std::array<std::byte, kSize> gpu_{};
  NoQueues queues_;
  Ring ring_{};
  RecvSession session_{{.rails = {0}, .ring = {}}, ring_, queues_};
};

TEST_F(ReceiversLandings, AreInsideOfTheBuffer) {
  EXPECT_EQ(session_.place(piece(0, kSize))->begin, host_.data());
  EXPECT_EQ(session_.place(piece(999, 1))->begin, &host_[999]);
  EXPECT_TRUE(takes(piece(kSize, 0)));
  EXPECT_FALSE(takes(piece(0, kSize + 1)));
  EXPECT_FALSE(takes(piece(1, kSize)));
  EXPECT_FALSE(takes(piece(1, ~0U))) << "which wraps";
  EXPECT_FALSE(takes(piece(kSize + 1, 0)));
  EXPECT_FALSE(takes(piece(~std::uint64_t{0}, 1))) << "in front of it";
  EXPECT_FALSE(takes(piece(-address_of(host_), 1)));
}

TEST_F(ReceiversLandings, AreOfAPieceThatHasNotCome) {
  EXPECT_FALSE(takes(piece(0, 8, {.slot = 2, .sequence = 1}))) << "not posted";
  EXPECT_FALSE(takes(piece(0, 8, {.slot = 8, .sequence = 2}))) << "not posted";
  EXPECT_FALSE(takes(piece(0, 8, {.slot = 0, .sequence = 2})));
  EXPECT_FALSE(takes(piece(0, 8, {.slot = 0, .sequence = 1, .piece = 2, .pieces = 2})));
  const Immediate first{.slot = 0, .sequence = 1, .piece = 0, .pieces = 2};
  const Immediate second{.slot = 0, .sequence = 1, .piece = 1, .pieces = 2};
  ASSERT_TRUE(takes(piece(0, 8, first)));
  ASSERT_TRUE(session_.on_immediate(0, encode(first), 8));
  EXPECT_FALSE(takes(piece(0, 8, first)));
  EXPECT_FALSE(takes(piece(0, 8, {.slot = 0, .sequence = 1, .piece = 1, .pieces = 3})));
  EXPECT_TRUE(takes(piece(8, 8, second)));
  ASSERT_TRUE(session_.on_immediate(0, encode(second), 8));
  EXPECT_FALSE(takes(piece(8, 8, second))) << "the buffer is done";
}

TEST_F(ReceiversLandings, AreOfHostMemory) {
  StreamRecord record = piece(0, 8, {.slot = 1, .sequence = 1});
  record.remote = address_of(gpu_);
  EXPECT_FALSE(takes(record));
  record = piece(0, 64);
  record.kind = Kind::kWrite;
  EXPECT_FALSE(takes(record)) << "nobody writes slots here";
}

TEST(SendersLandings, AreWholeSlotsOfOneRow) {
  Ring ring{};
  NoQueues queues;
  const SendSession session({{.is_tcp = true}}, ring, queues);
  const auto takes = [&](std::uint64_t offset, std::uint32_t size, Kind kind = Kind::kWrite) {
    return session
        .place({.kind = kind,
                .size_bytes = size,
                .remote = reinterpret_cast<std::uint64_t>(ring.data()) + offset})
        .has_value();
  };
  constexpr std::uint32_t kSlot = sizeof(Slot);
  constexpr std::uint32_t kRow = 8 * kSlot;
  EXPECT_TRUE(takes(0, kRow));
  EXPECT_TRUE(takes(sizeof ring - kSlot, kSlot));
  EXPECT_FALSE(takes(0, kRow, Kind::kPiece));
  EXPECT_FALSE(takes(0, kRow + kSlot));
  EXPECT_FALSE(takes(kSlot, kRow));
  EXPECT_FALSE(takes(8, kSlot)) << "in the middle of one";
  EXPECT_FALSE(takes(0, kSlot - 1));
  EXPECT_FALSE(takes(sizeof ring, kSlot));
  EXPECT_FALSE(takes(-std::uint64_t{kSlot}, kSlot)) << "in front of it";
  EXPECT_FALSE(takes(0, ~0U - kSlot + 1));
}

}  // namespace
}  // namespace ztcp::verbs
