// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/job_ring.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

struct Sum {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t answer = 0;
};
using Ring = JobRing<Sum, 8>;
constexpr auto kNothing = [](const Sum&) {};
constexpr auto kAdd = [](Sum& job) { job.answer = job.a + job.b; };

TEST(JobRing, JobsComeBackInOrderWithTheirAnswers) {
  Ring ring;
  EXPECT_EQ(ring.first_done(), nullptr);
  ring.put({1, 2});
  ring.put({3, 4});
  EXPECT_FALSE(ring.work(kAdd)) << "nothing is published";
  EXPECT_TRUE(ring.publish());
  EXPECT_FALSE(ring.publish()) << "nothing new";
  ring.reap(kNothing);
  EXPECT_EQ(ring.first_done(), nullptr);
  EXPECT_TRUE(ring.work(kAdd));
  EXPECT_EQ(ring.first_done(), nullptr) << "before it is looked for";
  std::uint64_t known = 0;
  ring.reap([&](const Sum& job) { known += job.answer; });
  ring.reap([&](const Sum& job) { known += job.answer; });
  EXPECT_EQ(known, 3U) << "once";
  ASSERT_NE(ring.first_done(), nullptr);
  EXPECT_EQ(ring.first_done()->answer, 3U);
  ring.take_first();
  EXPECT_EQ(ring.first_done(), nullptr);
  EXPECT_FALSE(ring.is_empty());
  EXPECT_FALSE(ring.is_done(ring.position()));
  EXPECT_TRUE(ring.work(kAdd));
  EXPECT_TRUE(ring.is_done(ring.position()));
  ring.reap(kNothing);
  EXPECT_EQ(ring.first_done()->answer, 7U);
  ring.take_first();
  EXPECT_TRUE(ring.is_empty());
}

TEST(JobRing, ASlotIsFreeWhenItsJobWasTakenBack) {
  Ring ring;
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(ring.room(), 8 - i);
    ring.put({i, 0});
  }
  EXPECT_EQ(ring.room(), 0U);
  ring.publish();
  while (ring.work(kAdd)) {
  }
  EXPECT_EQ(ring.room(), 0U);
  ring.reap(kNothing);
  ring.take_first();
  EXPECT_EQ(ring.room(), 1U);
  std::uint64_t seen = 1;
  ring.for_each_out([&](const Sum& job) { EXPECT_EQ(job.answer, seen++); });
  EXPECT_EQ(seen, 8U);
}

TEST(JobRing, CarriesJobsBetweenThreads) {
  constexpr std::uint64_t kJobs = 20'000;
  Ring ring;
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop.load())
      if (!ring.work(kAdd)) std::this_thread::yield();
  });
  std::uint64_t back = 0;
  for (std::uint64_t next = 0; back < kJobs;) {
    for (; next < kJobs && ring.room() != 0; ++next) ring.put({next, 1});
    ring.publish();
    ring.reap(kNothing);
    for (; const Sum* const job = ring.first_done(); ++back) {
      ASSERT_EQ(job->answer, back + 1);
      ring.take_first();
    }
    std::this_thread::yield();
  }
  stop.store(true);
  worker.join();
}

}  // namespace
}  // namespace ztcp
