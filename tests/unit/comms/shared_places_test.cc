// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/shared_places.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

TEST(SharedPlaces, NewSessionTriesForAPlaceWithClearlyFewerSessions) {
  SharedPlaces places(3);
  places.note_begun(0, 1);
  EXPECT_FALSE(places.better_place(0, 1)) << "a difference of one is too small";
  places.note_begun(0, 1);
  EXPECT_EQ(places.better_place(0, 1), 1);
  EXPECT_FALSE(places.better_place(1, 1));
  places.note_begun(1, 1);
  EXPECT_EQ(places.better_place(0, 1), 2);
  places.note_ended(0);
  EXPECT_FALSE(places.better_place(0, 1));
}

TEST(SharedPlaces, FullPlaceRefersToTheLeastUsedPlaceWithRoom) {
  SharedPlaces places(3);
  places.note_begun(1, 1);
  EXPECT_EQ(places.place_with_room(0), 0);
  places.note_full(0, true);
  EXPECT_EQ(places.place_with_room(0), 2);
  places.note_full(2, true);
  EXPECT_EQ(places.place_with_room(0), 1);
  places.note_full(1, true);
  EXPECT_FALSE(places.place_with_room(0));
  places.note_full(0, false);
  EXPECT_EQ(places.place_with_room(0), 0);
  EXPECT_EQ(places.place_with_room(1), 0);
}

TEST(SharedPlaces, NumberOfTriesIsLimited) {
  SharedPlaces places(2);
  for (int i = 0; i < 9; ++i) places.note_begun(0, 1);
  EXPECT_TRUE(places.better_place(0, SharedPlaces::kMostTries));
  EXPECT_FALSE(places.better_place(0, SharedPlaces::kMostTries + 1));
}

// A NIC that chooses queues by addresses alone.
TEST(SharedPlaces, NoSessionTriesAfterThreeInARowRanOutOfTries) {
  SharedPlaces places(2);
  for (int i = 0; i < 9; ++i) places.note_begun(0, 1);
  const auto begin_in_vain = [&] { places.note_begun(0, SharedPlaces::kMostTries + 1); };
  begin_in_vain();
  begin_in_vain();
  places.note_begun(1, 4);  // The fourth try succeeded.
  begin_in_vain();
  begin_in_vain();
  EXPECT_TRUE(places.better_place(0, 1));
  begin_in_vain();
  EXPECT_FALSE(places.better_place(0, 1));
}

}  // namespace
}  // namespace ztcp::comms
