// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/task_queue.h"

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

using Queue = TaskQueue<std::size_t, 8>;

TEST(TaskQueue, GivesTasksBackInOrder) {
  Queue queue;
  std::vector<std::size_t> done;
  std::vector<std::size_t> back;
  const auto do_it = [&](std::size_t task) { done.push_back(task); };
  const auto visit = [&](std::size_t task) { back.push_back(task); };
  EXPECT_FALSE(queue.work(do_it));
  queue.give(3);
  queue.give(5);
  EXPECT_EQ(queue.waiting(), 2U);
  EXPECT_FALSE(queue.take_back(visit));
  EXPECT_TRUE(queue.work(do_it));
  EXPECT_EQ(queue.waiting(), 1U);
  EXPECT_TRUE(queue.take_back(visit));
  EXPECT_EQ(back, std::vector<std::size_t>{3});
  EXPECT_TRUE(queue.work(do_it));
  EXPECT_TRUE(queue.take_back(visit));
  EXPECT_EQ(back, (std::vector<std::size_t>{3, 5}));
  EXPECT_EQ(done, back);
}

TEST(TaskQueue, Full_HasRoomOnceTheOldestIsTakenBack) {
  Queue queue;
  const auto ignore = [](std::size_t) {};
  for (std::size_t round = 0; round < 5; ++round) {
    for (std::size_t task = 0; task < 8; ++task) {
      ASSERT_TRUE(queue.has_room());
      queue.give(task);
    }
    EXPECT_FALSE(queue.has_room());
    EXPECT_TRUE(queue.work(ignore));
    EXPECT_FALSE(queue.has_room());
    EXPECT_TRUE(queue.take_back(ignore));
    EXPECT_TRUE(queue.has_room());
    while (queue.work(ignore)) {
    }
    queue.take_back(ignore);
  }
}

TEST(TaskQueue, Finish_DoesWhatNoThreadHasBegun) {
  Queue queue;
  std::size_t sum = 0;
  const auto add = [&](std::size_t task) { sum += task; };
  queue.finish(add);
  for (const std::size_t task : {1, 2, 3}) queue.give(task);
  queue.finish(add);
  EXPECT_EQ(sum, 6U);
}

TEST(TaskQueue, ThreadsDoEachTaskOnceAndTheGiverSeesTheirStores) {
  constexpr std::size_t kTasks = 50'000;
  Queue queue;
  std::vector<std::size_t> times(kTasks);  // Not atomic: the queue orders the accesses.
  std::atomic<bool> is_over{false};
  const auto do_it = [&](std::size_t task) { ++times[task]; };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!is_over.load())
        if (!queue.work(do_it)) std::this_thread::yield();
    });
  std::size_t back = 0;
  const auto take_back = [&] {
    return queue.take_back([&](std::size_t task) {
      EXPECT_EQ(task, back++);
      EXPECT_EQ(times[task], 1U);
    });
  };
  for (std::size_t given = 0; given < kTasks;) {
    if (queue.has_room())
      queue.give(given++);
    else if (!take_back())
      queue.work(do_it);
  }
  queue.finish(do_it);
  take_back();
  EXPECT_EQ(back, kTasks);
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ztcp
