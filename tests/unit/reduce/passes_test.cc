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
            .owner = owner,
            .wire = reinterpret_cast<std::byte*>(wire.data()),
            .values = reinterpret_cast<const std::byte*>(values.data()),
            .elements = {0, values.size()}};
  }
};

TEST(Passes, WithoutWorkers_APassIsOneTask) {
  Rounding rounding(5);
  CountedWorkers none(0);
  for (Workers* const workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&none)}) {
    Passes passes(workers);
    EXPECT_EQ(passes.give(rounding.pass()), 1U);
    passes.publish();
    EXPECT_TRUE(passes.work());
    EXPECT_FALSE(passes.work());
  }
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
  const std::uint16_t rounded = narrow_bfloat16(1.5F);
  EXPECT_EQ(rounding.wire.back(), 0U);
  rounding.wire.back() = rounded;
  EXPECT_EQ(rounding.wire, std::vector<std::uint16_t>(rounding.wire.size(), rounded));
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
  Rounding rounding(1);
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
