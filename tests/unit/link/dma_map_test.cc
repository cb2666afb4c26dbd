// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/dma_map.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

constexpr std::uintptr_t kBase = 0x7f0000000000;
constexpr std::size_t kPage = DmaMap::kPageBytes;

// A device that tracks its pages and rejects the same calls as a real one.
class FakeMapper final : public DmaMapper {
 public:
  Status map(std::uintptr_t address, std::size_t size_bytes) override {
    EXPECT_EQ(address % kPage, 0U);
    EXPECT_EQ(size_bytes % kPage, 0U);
    EXPECT_GT(size_bytes, 0U);
    if (maps_until_failure == 0) return fail(Errc::kSystem, "map", ENOMEM);
    --maps_until_failure;
    for (std::size_t at = 0; at < size_bytes; at += kPage)
      EXPECT_TRUE(pages.insert(address + at).second) << "mapped twice";
    ++maps;
    return {};
  }
  void unmap(std::uintptr_t address, std::size_t size_bytes) override {
    for (std::size_t at = 0; at < size_bytes; at += kPage)
      EXPECT_EQ(pages.erase(address + at), 1U) << "unmapped a page that was not mapped";
    --maps;
  }
  std::set<std::uintptr_t> pages;
  int maps = 0;
  int maps_until_failure = 1000000;
};

class DmaMapTest : public testing::Test {
 protected:
  static const void* at(std::size_t offset) {
    return reinterpret_cast<const void*>(kBase + offset);
  }
  bool readable(std::size_t page) const { return mapper_.pages.count(kBase + page * kPage) == 1; }

  FakeMapper mapper_;
  DmaMap map_{mapper_, "test", 4};
};

TEST_F(DmaMapTest, MapsWholePagesAround) {
  const auto key = map_.acquire(at(100), kPage);  // Straddles two pages.
  EXPECT_NE(key, kUnmapped);
  EXPECT_EQ(mapper_.pages.size(), 2U);
  map_.release(key);
  EXPECT_TRUE(mapper_.pages.empty());
}

TEST_F(DmaMapTest, AnEmptyRangeIsNotMapped) {
  EXPECT_EQ(map_.acquire(at(0), 0), kUnmapped);
  EXPECT_EQ(map_.acquire(nullptr, 10), kUnmapped);
  map_.release(kUnmapped);
  map_.release(77);
}

TEST_F(DmaMapTest, TheSameRangeTwiceIsMappedOnce) {
  const auto first = map_.acquire(at(0), kPage);
  const auto second = map_.acquire(at(0), kPage);
  EXPECT_NE(first, second);
  EXPECT_EQ(mapper_.maps, 1);
  map_.release(first);
  EXPECT_TRUE(readable(0));
  map_.release(first);  // A key released twice takes nothing from others.
  EXPECT_TRUE(readable(0));
  map_.release(second);
  EXPECT_FALSE(readable(0));
}

TEST_F(DmaMapTest, BuffersMayShareAPage) {
  const auto first = map_.acquire(at(0), kPage + 10);
  const auto second = map_.acquire(at(kPage + 10), kPage);
  EXPECT_EQ(mapper_.pages.size(), 3U);
  map_.release(first);
  EXPECT_TRUE(readable(1)) << "the shared page is the second's, too";
  EXPECT_TRUE(readable(2));
  map_.release(second);
  EXPECT_TRUE(mapper_.pages.empty());
}

TEST_F(DmaMapTest, ALargeRangeOverSmallOnesFillsTheGaps) {
  const auto left = map_.acquire(at(1 * kPage), kPage);
  const auto right = map_.acquire(at(3 * kPage), kPage);
  const auto all = map_.acquire(at(1 * kPage), 3 * kPage);
  EXPECT_EQ(mapper_.maps, 3);
  map_.release(left);
  map_.release(right);
  for (std::size_t page = 1; page <= 3; ++page) EXPECT_TRUE(readable(page)) << page;
  map_.release(all);
  EXPECT_TRUE(mapper_.pages.empty());
  EXPECT_EQ(map_.ranges(), 0U);
}

TEST_F(DmaMapTest, ASmallRangeKeepsTheLargeOneItLiesIn) {
  const auto large = map_.acquire(at(0), 10 * kPage);
  const auto small = map_.acquire(at(5 * kPage), 1);
  EXPECT_EQ(mapper_.maps, 1);
  map_.release(large);
  EXPECT_TRUE(readable(5));
  map_.release(small);
  EXPECT_TRUE(mapper_.pages.empty());
}

TEST_F(DmaMapTest, AFullMapServesByCopyingAndRecovers) {
  std::vector<std::uint32_t> keys;
  for (std::size_t i = 0; i < 4; ++i) keys.push_back(map_.acquire(at(2 * i * kPage), kPage));
  EXPECT_EQ(map_.acquire(at(100 * kPage), kPage), kUnmapped);
  EXPECT_NE(map_.acquire(at(0), kPage), kUnmapped) << "needs no new range";
  map_.release(keys[3]);
  EXPECT_NE(map_.acquire(at(100 * kPage), kPage), kUnmapped);
}

TEST_F(DmaMapTest, ARefusalHalfWayLeavesNothingBehind) {
  const auto middle = map_.acquire(at(2 * kPage), kPage);
  mapper_.maps_until_failure = 1;
  EXPECT_EQ(map_.acquire(at(0), 5 * kPage), kUnmapped);
  EXPECT_EQ(mapper_.pages.size(), 1U);
  EXPECT_TRUE(readable(2));
  mapper_.maps_until_failure = 10;
  EXPECT_NE(map_.acquire(at(0), 5 * kPage), kUnmapped);
  map_.release(middle);
  EXPECT_EQ(mapper_.pages.size(), 5U);
}

// A heap's buffers that share a page: the other pages of the first one may be unmapped and reused
// as other memory, while the device keeps the old ones.
TEST_F(DmaMapTest, NewMemoryOnStalePagesIsServedByCopying) {
  const auto first = map_.acquire(at(0), 10 * kPage);
  const auto second = map_.acquire(at(9 * kPage + 100), kPage);
  map_.release(first);
  EXPECT_TRUE(readable(3)) << "a range goes as a whole";
  EXPECT_EQ(map_.acquire(at(2 * kPage), 3 * kPage), kUnmapped);
  EXPECT_EQ(map_.acquire(at(8 * kPage), 2 * kPage), kUnmapped);
  const auto same = map_.acquire(at(9 * kPage), 2 * kPage);
  EXPECT_NE(same, kUnmapped) << "this much is alive";
  map_.release(same);
  map_.release(second);
  const auto again = map_.acquire(at(2 * kPage), 3 * kPage);
  EXPECT_NE(again, kUnmapped);
  map_.release(again);
  EXPECT_TRUE(mapper_.pages.empty());
}

TEST_F(DmaMapTest, RetiredMemoryStaysMappedButServesNoNewRegistration) {
  const auto key = map_.acquire(at(0), 2 * kPage);
  map_.retire(key);
  EXPECT_TRUE(readable(1));
  EXPECT_EQ(map_.acquire(at(0), kPage), kUnmapped);
  const auto behind = map_.acquire(at(2 * kPage), kPage);
  EXPECT_NE(behind, kUnmapped);
  map_.release(key);
  EXPECT_FALSE(readable(1));
  const auto again = map_.acquire(at(0), kPage);
  EXPECT_NE(again, kUnmapped);
  map_.release(again);
  map_.release(behind);
  EXPECT_TRUE(mapper_.pages.empty());
}

// Random registrations against a plain count per page.
TEST_F(DmaMapTest, RandomRegistrationsAgreeWithACountPerPage) {
  DmaMap map(mapper_, "test", 1000);
  std::uint64_t state = 42;
  const auto draw = [&state](std::uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33U) % below;
  };
  struct Live {
    std::uint32_t key;
    std::size_t first;
    std::size_t pages;
  };
  std::vector<Live> live;
  const auto is_owned = [&live](std::size_t page) {
    return std::any_of(live.begin(), live.end(), [page](const Live& l) {
      return page >= l.first && page < l.first + l.pages;
    });
  };
  for (int step = 0; step < 5000; ++step) {
    if (live.empty() || draw(2) == 0) {
      const std::size_t first = draw(64);
      const std::size_t pages = 1 + draw(12);
      // A mapped page without an owner may be other memory by now.
      bool stale = false;
      for (std::size_t page = first; page < first + pages; ++page)
        stale |= readable(page) && !is_owned(page);
      const auto key = map.acquire(at(first * kPage), pages * kPage);
      ASSERT_EQ(key == kUnmapped, stale) << "step " << step;
      if (!stale) live.push_back({key, first, pages});
    } else {
      const std::size_t victim = draw(live.size());
      map.release(live[victim].key);
      live[victim] = live.back();
      live.pop_back();
    }
    for (std::size_t page = 0; page < 80; ++page) {
      // A range may outlive some of its users, never the reverse.
      ASSERT_TRUE(!is_owned(page) || readable(page)) << "step " << step << " page " << page;
    }
    ASSERT_TRUE(!live.empty() || mapper_.pages.empty());
  }
  for (const Live& l : live) map.release(l.key);
  EXPECT_TRUE(mapper_.pages.empty());
}

}  // namespace
}  // namespace ztcp::link
