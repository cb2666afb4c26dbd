// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/drop_reader.h"

#include <atomic>
#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "tests/unit/link/within_seconds.h"

namespace ztcp::link {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(DropCountTest, CountsFromTheFirstReading) {
  DropCount count;
  EXPECT_EQ(count.add({.rx_missed = 100, .tx_errors = 7}), NicDrops{});
  EXPECT_EQ(count.add({.rx_missed = 103, .rx_errors = 1, .tx_errors = 7}),
            (NicDrops{.rx_missed = 3, .rx_errors = 1}));
}

TEST(DropCountTest, GoesOnAfterTheDriverSetsItsCountsBack) {
  DropCount count;
  count.add({.rx_missed = 100});
  count.add({.rx_missed = 110});
  EXPECT_EQ(count.add({.rx_missed = 2}).rx_missed, 10U);
  EXPECT_EQ(count.add({.rx_missed = 5}).rx_missed, 13U);
}

TEST(DropReaderTest, ReadsAtIntervals) {
  std::atomic<std::uint64_t> missed{40};
  DropReader reader([&] { return NicDrops{.rx_missed = missed += 2}; }, milliseconds(1));
  EXPECT_TRUE(test::within_seconds(5, [&] { return reader.drops().rx_missed >= 4; }));
}

TEST(DropReaderTest, KeepsItsCountsWhileTheDriverDoesNotAnswer) {
  std::atomic<int> readings{0};
  DropReader reader(
      [&]() -> std::optional<NicDrops> {
        const int number = readings++;
        if (number > 1) return std::nullopt;
        return NicDrops{.rx_missed = number == 0 ? 0U : 5U};
      },
      milliseconds(1));
  ASSERT_TRUE(test::within_seconds(5, [&] { return readings > 3; }));
  EXPECT_EQ(reader.drops().rx_missed, 5U);
}

TEST(DropReaderTest, AReadingExcludesOtherControlCallsWithoutMakingThemWait) {
  std::atomic<bool> reads{false};
  std::atomic<bool> may_end{false};
  DropReader reader(
      [&] {
        reads = true;
        while (!may_end) std::this_thread::yield();
        return NicDrops{};
      },
      hours(1));
  ASSERT_TRUE(test::within_seconds(5, [&] { return reads.load(); }));
  EXPECT_FALSE(reader.try_to_control().owns_lock());
  EXPECT_EQ(reader.drops(), NicDrops{});
  may_end = true;
  EXPECT_TRUE(test::within_seconds(5, [&] { return reader.try_to_control().owns_lock(); }));
}

TEST(DropReaderTest, NoReadingFollowsItsEnd) {
  std::atomic<int> readings{0};
  DropReader reader(
      [&] {
        ++readings;
        return NicDrops{};
      },
      hours(1));
  ASSERT_TRUE(test::within_seconds(5, [&] { return readings == 1; }));
  reader.stop();  // Without waiting for the interval.
  EXPECT_EQ(readings, 1);
}

}  // namespace
}  // namespace ztcp::link
