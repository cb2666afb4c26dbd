// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One end of a rail of TCP against a peer that breaks the protocol, and the cost of its polls.
#include "transport/verbs/session/piece_stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::verbs {
namespace {

using Kind = StreamRecord::Kind;
using Bytes = std::vector<std::byte>;

// A peer that is played by the test, with the bytes that it sent and received.
class Peer final : public Pipe, public Landings {
 public:
  Result<std::size_t> send(std::span<const std::span<const std::byte>> parts) override {
    ++sends;
    std::size_t took = 0;
    for (const auto& part : parts)
      for (const std::byte one : part.first(std::min(part.size(), room - took))) {
        heard.push_back(one);
        ++took;
      }
    room -= took;
    return took;
  }
  Result<std::size_t> receive(std::span<const std::span<std::byte>> parts) override {
    ++receives;
    if (said.empty() && is_gone) return fail(Errc::kPeerClosed, "recv");
    std::size_t at = 0;
    for (const auto& part : parts) {
      const std::size_t now = std::min(part.size(), said.size() - at);
      std::copy_n(said.begin() + static_cast<std::ptrdiff_t>(at), now, part.begin());
      at += now;
    }
    said.erase(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(at));
    return at;
  }
  Result<Landing> place(const StreamRecord& record) override {
    if (record.remote != 7 || is_done) return fail(Errc::kProtocol, "nowhere");
    return Landing{buffer.data(), is_polled};
  }

  void say(const StreamRecord& record, std::size_t bytes = 0) {
    const auto header = std::as_bytes(std::span(&record, 1));
    said.insert(said.end(), header.begin(), header.end());
    said.insert(said.end(), bytes, std::byte{5});
  }
  void say_piece(std::uint32_t size) {
    say({.kind = Kind::kPiece, .wants_answer = 1, .size_bytes = size, .remote = 7, .immediate = 3},
        size);
  }

  Bytes said;
  Bytes heard;
  Bytes buffer = Bytes(1'000'000);
  std::size_t room = 1U << 30U;
  bool is_gone = false;
  bool is_polled = false;
  bool is_done = false;  // With the buffer.
  int sends = 0;
  int receives = 0;
};

class PieceStreamTest : public testing::Test {
 protected:
  static constexpr std::size_t kTold = 4;

  Result<std::size_t> poll() { return stream_.poll(told_); }
  // However silent it was.
  Result<std::size_t> look() {
    stream_.expect();
    return poll();
  }
  void post(std::uint32_t size, std::uint64_t id) {
    stream_.post({.kind = WorkRequest::Kind::kWriteImmediate,
                  .is_signalled = true,
                  .local = from_.data(),
                  .size_bytes = size,
                  .remote = 9,
                  .immediate = 4,
                  .id = id});
  }
  Errc refusal() {
    while (true) {
      const auto told = look();
      if (!told) return told.error().code;
      if (*told == 0 && peer_.said.empty()) return Errc::kBusy;
    }
  }

  Peer peer_;
  PieceStream stream_{peer_, peer_};
  Bytes from_ = Bytes(1'000'000, std::byte{8});
  std::array<PieceStream::Told, kTold> told_;
};

TEST_F(PieceStreamTest, ARecordAndItsBytesAreAWorkRequest) {
  post(100, 17);
  StreamRecord record;
  ASSERT_EQ(peer_.heard.size(), sizeof record + 100);
  std::memcpy(&record, peer_.heard.data(), sizeof record);
  EXPECT_EQ(record.kind, Kind::kPiece);
  EXPECT_EQ(record.size_bytes, 100U);
  EXPECT_EQ(record.remote, 9U);
  EXPECT_EQ(record.immediate, 4U);
  EXPECT_EQ(peer_.heard.back(), std::byte{8});
  EXPECT_EQ(peer_.sends, 1) << "with one call";
  post(100, 18);
  peer_.say({.kind = Kind::kDone, .landed = 2});
  ASSERT_EQ(*look(), 1U);
  EXPECT_EQ(told_[0].id, 18U) << "of both";
}

TEST_F(PieceStreamTest, APieceLandsWholeOrByPortions) {
  for (const bool is_polled : {false, true}) {
    peer_.is_polled = is_polled;
    peer_.say_piece(900'000);
    std::size_t polls = 0;
    Result<std::size_t> told = 0;
    while (told && *told == 0) {
      const std::size_t before = peer_.said.size();
      told = look();
      ++polls;
      EXPECT_LE(before - peer_.said.size(), PieceStream::kPortionBytes + PieceStream::kStagedBytes);
    }
    ASSERT_EQ(*told, 1U);
    EXPECT_GT(polls, 5U);
    EXPECT_TRUE(told_[0].is_immediate);
    EXPECT_EQ(told_[0].immediate, 3U);
    EXPECT_EQ(told_[0].size_bytes, 900'000U);
    EXPECT_EQ(std::count(peer_.buffer.begin(), peer_.buffer.end(), std::byte{5}), 900'000);
    peer_.buffer.assign(peer_.buffer.size(), std::byte{0});
  }
}

// Each portion asks for its destination again: the message may have arrived over another rail
// meanwhile.
TEST_F(PieceStreamTest, ABufferThatIsDoneGetsNoMoreOfAPiece) {
  for (const bool is_polled : {false, true}) {
    Peer peer;
    PieceStream stream(peer, peer);
    peer.is_polled = is_polled;
    peer.say_piece(900'000);
    ASSERT_EQ(*stream.poll(told_), 0U);
    peer.is_done = true;
    const Bytes before = peer.buffer;
    EXPECT_EQ(stream.poll(told_).error().code, Errc::kProtocol);
    EXPECT_EQ(peer.buffer, before);
  }
}

TEST_F(PieceStreamTest, APieceIsToldOfOnceItsAnswerHasLeft) {
  peer_.room = 0;
  peer_.say_piece(8);
  for (std::uint32_t i = 0; i < 2 * PieceStream::kPollEvery; ++i) EXPECT_EQ(*look(), 0U);
  peer_.room = 1000;
  std::size_t told = 0;
  for (std::uint32_t i = 0; i <= PieceStream::kPollEvery && told == 0; ++i) told = *poll();
  EXPECT_EQ(told, 1U);
  EXPECT_EQ(peer_.heard.size(), sizeof(StreamRecord));
}

TEST_F(PieceStreamTest, LandedPieceIsNotLostWithTheStream) {
  peer_.room = 0;
  peer_.say_piece(8);
  EXPECT_EQ(*look(), 0U);
  const auto untold = stream_.take_untold();
  ASSERT_TRUE(untold);
  EXPECT_EQ(untold->size_bytes, 8U);
  EXPECT_FALSE(stream_.take_untold());
}

TEST_F(PieceStreamTest, ASilentPeerIsAskedSeldom) {
  for (int i = 0; i < 160; ++i) EXPECT_EQ(*poll(), 0U);
  EXPECT_EQ(peer_.receives, 10);
  peer_.room = 0;
  peer_.sends = 0;
  post(8, 1);
  for (int i = 0; i < 160; ++i) EXPECT_EQ(*poll(), 0U);
  EXPECT_LE(peer_.sends, 11) << "nor is one that takes nothing";
}

TEST_F(PieceStreamTest, ForbiddenRecordEndsTheConnection) {
  const auto refuse = [](const StreamRecord& record, std::size_t bytes = 0) {
    Peer peer;
    PieceStream stream(peer, peer);
    peer.say(record, bytes);
    std::array<PieceStream::Told, kTold> told;
    while (true) {
      stream.expect();
      const auto count = stream.poll(told);
      if (!count) return count.error().code == Errc::kProtocol;
      if (*count == 0 && peer.said.empty()) return false;
    }
  };
  EXPECT_TRUE(refuse({.kind = static_cast<Kind>(0)}));
  EXPECT_TRUE(refuse({.kind = static_cast<Kind>(5)}));
  EXPECT_TRUE(refuse({.kind = Kind::kPiece, .size_bytes = 8, .remote = 6}, 8)) << "nowhere";
  EXPECT_TRUE(refuse({.kind = Kind::kPiece, .remote = 6})) << "of no bytes, and nowhere";
  EXPECT_TRUE(refuse({.kind = Kind::kWrite, .size_bytes = 8, .remote = 6}, 8));
  EXPECT_TRUE(refuse({.kind = Kind::kDone, .landed = 1})) << "an answer to nothing";
  EXPECT_TRUE(refuse({.kind = Kind::kDone, .size_bytes = 8}, 8));
  EXPECT_TRUE(refuse({.kind = Kind::kWelcome, .size_bytes = 8}, 8));
  EXPECT_FALSE(refuse({.kind = Kind::kWelcome}));
}

TEST_F(PieceStreamTest, AnAnswerToWhatHasNotLeftIsNone) {
  peer_.room = 50;
  post(100, 1);
  peer_.say({.kind = Kind::kDone, .landed = 1});
  EXPECT_EQ(refusal(), Errc::kProtocol);
}

TEST_F(PieceStreamTest, RecordsBeforeTheEndCount) {
  post(100, 1);
  peer_.say({.kind = Kind::kDone, .landed = 1});
  peer_.is_gone = true;
  EXPECT_EQ(*look(), 1U);
  EXPECT_EQ(refusal(), Errc::kPeerClosed);
}

// A peer that has its slots' writes answered and reads no answer is heard no further.
TEST_F(PieceStreamTest, ManyAnswersThatNobodyReadsHaveAnEnd) {
  peer_.room = 0;
  for (int i = 0; i < 5000; ++i) peer_.say({.kind = Kind::kWrite, .wants_answer = 1, .remote = 7});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(look());
  EXPECT_FALSE(peer_.said.empty());
}

}  // namespace
}  // namespace ztcp::verbs
