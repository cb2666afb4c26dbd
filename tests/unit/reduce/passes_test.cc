// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/passes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "core/job_ring.h"
#include "transport/reduce/narrow_float.h"

namespace ztcp::reduce {
namespace {

class CountedWorkers final : public Workers {
 public:
  explicit CountedWorkers(std::size_t count) : count_(count) {}
  std::size_t count() const override { return count_; }
  void wake(std::size_t worker) override { woken.push_back(worker); }
  bool wait_for(std::size_t) override { return true; }

  std::vector<std::size_t> woken;

 private:
  std::size_t count_;
};

// A pass that rounds floats, and its memory.
struct Rounding {
  std::vector<float> values;
  std::vector<std::uint16_t> wire;

  explicit Rounding(std::size_t tasks) : values(tasks * Passes::kTaskElements, 1.5F) {
    wire.resize(values.size());
  }
  Pass pass(std::uint32_t owner = 0) {
    return {.kind = Pass::Kind::kNarrow,
            .form = Wire::kBfloat16,
            .owner = owner,
            .wire = reinterpret_cast<std::byte*>(wire.data()),
            .values = reinterpret_cast<const std::byte*>(values.data()),
            .elements = {0, values.size()}};
  }
  bool is_done() const {
    return wire == std::vector<std::uint16_t>(wire.size(), narrow_bfloat16(1.5F));
  }
};

TEST(Passes, WithoutWorkers_TheGiverDoesAPassAtOnce) {
  CountedWorkers none(0);
  for (Workers* const workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&none)}) {
    Rounding rounding(5);
    Passes passes(workers);
    EXPECT_EQ(passes.give(rounding.pass()), 0U);
    EXPECT_TRUE(rounding.is_done());
    EXPECT_FALSE(passes.work());
  }
}

TEST(Passes, ASmallPassIsDoneAtOnceWhereNoneWaits) {
  CountedWorkers workers(2);
  Passes passes(&workers);
  Rounding small(1);
  EXPECT_EQ(passes.give(small.pass()), 0U);
  EXPECT_TRUE(small.is_done());
  Rounding large(2);
  EXPECT_EQ(passes.give(large.pass()), 2U);
  EXPECT_FALSE(large.is_done());
  EXPECT_EQ(passes.give(small.pass()), 1U);
  passes.settle();
  EXPECT_TRUE(large.is_done());
}

TEST(Passes, WithWorkers_TasksCoverAllElementsOnce) {
  Rounding rounding(3);
  rounding.values.pop_back();
  CountedWorkers workers(2);
  Passes passes(&workers);
  ASSERT_EQ(passes.give(rounding.pass(7)), 3U);
  while (passes.work()) {
  }
  std::vector<std::uint32_t> owners;
  EXPECT_TRUE(passes.collect([&](std::uint32_t owner) { owners.push_back(owner); }));
  EXPECT_EQ(owners, (std::vector<std::uint32_t>{7, 7, 7}));
  EXPECT_EQ(rounding.wire.back(), 0U);
  rounding.wire.pop_back();
  EXPECT_TRUE(rounding.is_done());
}

TEST(Passes, FewTasks_WakeNoWorker) {
  Rounding rounding(Passes::kTasksOfWaking - 1);
  CountedWorkers workers(3);
  Passes passes(&workers);
  passes.give(rounding.pass());
  passes.publish();
  EXPECT_TRUE(workers.woken.empty());
  passes.settle();
}

TEST(Passes, ManyTasks_WakeAWorkerForEachFew) {
  Rounding rounding(2 * Passes::kTasksOfWaking);
  CountedWorkers workers(3);
  Passes passes(&workers);
  passes.give(rounding.pass());
  passes.publish();
  EXPECT_EQ(workers.woken, (std::vector<std::size_t>{0, 1}));
  workers.woken.clear();
  for (int i = 0; i < 3; ++i) passes.give(rounding.pass());
  passes.publish();
  EXPECT_EQ(workers.woken, (std::vector<std::size_t>{0, 1, 2}));
  passes.settle();
}

TEST(Passes, FullQueue_TheGiverDoesTheRest) {
  Rounding rounding(2);
  CountedWorkers workers(1);
  Passes passes(&workers);
  std::uint32_t given = 0;
  std::uint32_t tasks = 0;
  do {
    tasks = passes.give(rounding.pass());
    given += tasks;
  } while (tasks != 0);
  std::uint32_t collected = 0;
  passes.settle();
  passes.collect([&](std::uint32_t) { ++collected; });
  EXPECT_EQ(collected, given);
}

}  // namespace
}  // namespace ztcp::reduce
