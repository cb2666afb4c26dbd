// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/note_log.h"

#include <vector>

#include <gmock/gmock.h>

namespace ztcp::verbs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct NoteLogTest : testing::Test {
  static RailNote note(std::uint32_t epoch) { return make_note(RailNote::Step::kFenced, 0, epoch); }
  static std::vector<RailNote> new_of(NoteLog& log) {
    std::vector<RailNote> out;
    log.take_new([&](const RailNote& one) { out.push_back(one); });
    return out;
  }
  static std::vector<std::uint32_t> epochs(const std::vector<RailNote>& notes) {
    std::vector<std::uint32_t> out;
    for (const RailNote& one : notes) out.push_back(one.epoch);
    return out;
  }
  static std::vector<std::uint32_t> repeated(NoteLog& log, std::uint32_t heard) {
    std::vector<RailNote> out;
    EXPECT_TRUE(log.repeat(heard, [&](const RailNote& one) { out.push_back(one); }));
    return epochs(out);
  }

  NoteLog ours;
  NoteLog peers;
};

TEST_F(NoteLogTest, EachIsNewOnce) {
  EXPECT_FALSE(ours.has_new());
  ours.add(note(5));
  ours.add(note(6));
  EXPECT_TRUE(ours.has_new());
  EXPECT_THAT(epochs(new_of(ours)), ElementsAre(5, 6));
  EXPECT_FALSE(ours.has_new());
  EXPECT_THAT(new_of(ours), IsEmpty());
  ours.add(note(7));
  EXPECT_THAT(epochs(new_of(ours)), ElementsAre(7));
}

// Both bring it: the second time it says nothing.
TEST_F(NoteLogTest, NoteOverTwoPathsCountsOnce) {
  for (std::uint32_t n = 1; n < 4; ++n) ours.add(note(n));
  const std::vector<RailNote> said = new_of(ours);
  EXPECT_TRUE(*peers.hear(said[0]));
  EXPECT_TRUE(*peers.hear(said[1]));
  EXPECT_FALSE(*peers.hear(said[0]));
  EXPECT_FALSE(*peers.hear(said[1]));
  EXPECT_TRUE(*peers.hear(said[2]));
  EXPECT_FALSE(*peers.hear(said[2]));
  EXPECT_EQ(peers.heard(), 3U);
}

TEST_F(NoteLogTest, APathThatBeginsBringsWhatWasNotHeard) {
  for (std::uint32_t n = 1; n < 4; ++n) ours.add(note(n));
  const std::vector<RailNote> said = new_of(ours);
  EXPECT_TRUE(*peers.hear(said[0]));
  ours.add(note(4));
  EXPECT_THAT(repeated(ours, peers.heard()), ElementsAre(2, 3, 4));
  EXPECT_TRUE(ours.has_new()) << "the other paths are to bring it, too";
  EXPECT_THAT(epochs(new_of(ours)), ElementsAre(4));
  EXPECT_THAT(repeated(ours, 0), ElementsAre(2, 3, 4)) << "and the first is not kept";
}

TEST_F(NoteLogTest, NotesThatThePeerHasHeardAreNotKept) {
  for (std::uint32_t n = 1; n < 4; ++n) ours.add(note(n));
  for (const RailNote& one : new_of(ours)) EXPECT_TRUE(*peers.hear(one));
  EXPECT_THAT(repeated(ours, 0), ElementsAre(1, 2, 3));
  peers.add(note(9));
  const std::vector<RailNote> answer = new_of(peers);
  EXPECT_EQ(answer[0].heard, 3U);
  EXPECT_TRUE(*ours.hear(answer[0]));
  EXPECT_THAT(repeated(ours, 0), IsEmpty());
}

TEST_F(NoteLogTest, ContradictoryNotesAreRefused) {
  ours.add(note(1));
  const RailNote first = new_of(ours)[0];
  RailNote ahead = first;
  ahead.number = 2;
  EXPECT_EQ(peers.hear(ahead).error().code, Errc::kProtocol);
  RailNote unsaid = first;
  unsaid.heard = 1;
  EXPECT_EQ(peers.hear(unsaid).error().code, Errc::kProtocol);
  EXPECT_FALSE(ours.repeat(2, [](const RailNote&) {}));
  EXPECT_TRUE(*peers.hear(first));
}

TEST(NoteLog, APeerThatHearsNothingIsNotAnsweredWithoutBound) {
  NoteLog notes;
  Result<bool> heard = false;
  std::uint32_t count = 0;
  for (; heard && count < 10'000; ++count) {
    RailNote told = make_note(RailNote::Step::kOffer, 0, 1);
    told.number = count + 1;
    heard = notes.hear(told);
    notes.add(make_note(RailNote::Step::kFenced, 0, 1));
  }
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code, Errc::kProtocol);
  EXPECT_LT(count, 1100U);
}

}  // namespace
}  // namespace ztcp::verbs
