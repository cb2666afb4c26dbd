// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/likely_stream.h"

#include <gtest/gtest.h>

namespace ztcp::sockets {
namespace {

TEST(LikelyStream, IsTheStreamThatReceivesMostOften) {
  LikelyStream<int> likely;
  int data = 0;
  int credit = 0;
  EXPECT_EQ(likely.get(), nullptr);
  for (int i = 0; i < 3; ++i) likely.note(data);
  EXPECT_EQ(likely.get(), nullptr) << "three receives may be chance";
  likely.note(data);
  EXPECT_EQ(likely.get(), &data);
  for (int i = 0; i < 100; ++i) {
    likely.note(i % 8 == 7 ? credit : data);
    EXPECT_EQ(likely.get(), &data) << i;
  }
  for (int i = 0; i < 3; ++i) likely.note(credit);
  EXPECT_EQ(likely.get(), &data);
  likely.note(credit);
  EXPECT_EQ(likely.get(), nullptr);
  for (int i = 0; i < 4; ++i) likely.note(credit);
  EXPECT_EQ(likely.get(), &credit);
  likely.forget(data);
  EXPECT_EQ(likely.get(), &credit);
  likely.forget(credit);
  EXPECT_EQ(likely.get(), nullptr);
}

TEST(LikelyStream, IsNoneIfSeveralStreamsReceiveInTurns) {
  LikelyStream<int> likely;
  int streams[3] = {};
  for (int i = 0; i < 100; ++i) {
    likely.note(streams[i % 3]);
    EXPECT_EQ(likely.get(), nullptr) << i;
  }
}

}  // namespace
}  // namespace ztcp::sockets
