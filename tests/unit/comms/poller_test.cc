// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The poller's loops, over a backend that only counts its turns.
#include "transport/comms/poller.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <pthread.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log.h"
#include "core/yielder.h"
#include "tests/support/log_capture.h"
#include "tests/unit/comms/counting_backend.h"

namespace ztcp::comms {
namespace {

// While an object exists no thread can be created: there is no room for such a stack.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(pthread_attr_init(&huge), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(Poller, StartAfterAFailedStart_StartsTheBackendOnlyOnce) {
  int starts = 0;
  PollerConfig config;
  config.name = "mem0";
  Poller poller(config, std::make_unique<CountingBackend>(starts));
  {
    const NoMoreThreads limit;
    const Status started = poller.start();
    ASSERT_FALSE(started);
    EXPECT_STREQ(started.error().where, "pthread_create");
  }
  ASSERT_TRUE(poller.start());
  ASSERT_TRUE(poller.start());
  EXPECT_EQ(starts, 1);
}

// Else an answer that comes between the two readings would seem to come too early.
TEST(Poller, TimeOfATurnIsReadAfterItsBytesAreTaken) {
  int starts = 0;
  PollerConfig config;
  config.name = "mem0";
  auto owned = std::make_unique<CountingBackend>(starts);
  CountingBackend& backend = *owned;
  Poller poller(config, std::move(owned));
  backend.polls_for = std::chrono::milliseconds(2);
  for (int i = 0; i < 3; ++i) {
    poller.turn();
    EXPECT_GE(poller.turn_time().time_since_epoch(), backend.polled_at.time_since_epoch());
    EXPECT_EQ(backend.last_now, poller.turn_time());
  }
}

// The thread gives the baton before it logs, so other threads go on.
TEST(Poller, LoggerMayEndTheThreadThatLogs) {
  int starts = 0;
  PollerConfig config;
  config.name = "mem0";
  Poller poller(config, std::make_unique<CountingBackend>(starts));
  log::bind([](log::Level, const char*, int, const char*) { pthread_exit(nullptr); });
  bool went_on = false;
  std::thread([&] {
    poller.with_backend([&](TimePoint) { poller.say_counts("now"); });
    went_on = true;
  }).join();
  log::bind(nullptr);
  EXPECT_FALSE(went_on);
  bool ran = false;
  EXPECT_TRUE(poller.with_backend_unless([] { return false; }, [&](TimePoint) { ran = true; }));
  EXPECT_TRUE(ran);
}

// The process is stopped in the middle of a turn, after deadlines were computed: they are as far
// away when it goes on.
TEST(Poller, StopInsideATurn_BringsNoDeadlineNearer) {
  int starts = 0;
  PollerConfig config;
  config.name = "mem0";
  config.longest_gap = std::chrono::milliseconds(50);
  auto owned = std::make_unique<CountingBackend>(starts);
  CountingBackend& backend = *owned;
  Poller poller(config, std::move(owned));
  poller.progress();
  for (const auto stop : {std::chrono::milliseconds(60), std::chrono::milliseconds(300)}) {
    backend.stops_for = stop;
    poller.progress();
    const TimePoint before = backend.last_now;
    backend.stops_for = {};
    poller.progress();
    EXPECT_EQ(backend.last_now - before, config.longest_gap);
    EXPECT_LE(backend.last_now, poller.backend_time());
  }
}

// The background thread had no CPU for a while: the line with the counters tells it.
TEST(Poller, ThreadThatRanLate_IsLoggedAtTheEnd) {
  using namespace std::chrono_literals;
  const test::LogCapture log;
  int starts = 0;
  std::atomic<int> looks{0};
  {
    PollerConfig config;
    config.name = "mem0";
    config.dedicated = true;
    config.on_check = [&](TimePoint) {
      if (++looks == 3) std::this_thread::sleep_for(20ms);
    };
    Poller poller(config, std::make_unique<CountingBackend>(starts));
    poller.with_backend([&](TimePoint) { poller.note_outstanding(1); });  // Keeps it awake.
    ASSERT_TRUE(poller.start());
    while (looks < 5) std::this_thread::sleep_for(1ms);
  }
  ASSERT_FALSE(log.infos().empty());
  EXPECT_THAT(log.infos().back(),
              testing::MatchesRegex("mem0: closed; it did nothing, and its thread ran late "
                                    "[0-9]+ times?, by up to [0-9]+[.][0-9] ms"));
}

// The background thread of a poller for which no other thread runs turns.
class Idling : public testing::Test {
 protected:
  void start(Duration max_sleep, Duration max_idle_sleep) {
    PollerConfig config;
    config.name = "mem0";
    config.max_sleep = max_sleep;
    config.max_idle_sleep = max_idle_sleep;
    config.wake = *WakeEvent::make();
    wake = config.wake;
    auto owned = std::make_unique<CountingBackend>(starts_);
    backend = owned.get();
    poller.emplace(config, std::move(owned));
    ASSERT_TRUE(poller->start());
  }
  // Bounded by the time limit of the test run.
  void wait_for_turns(int count) const {
    while (backend->turns < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::shared_ptr<WakeEvent> wake;
  CountingBackend* backend = nullptr;
  std::optional<Poller> poller;

 private:
  int starts_ = 0;
};

TEST_F(Idling, EachSleepIsTwiceAsLongUpToTheIdleLimit) {
  using namespace std::chrono_literals;
  start(1ms, 100ms);
  wait_for_turns(8);  // After sleeps of 2, 4, 8 ... 64 and 100 ms.
  const TimePoint begin = Poller::read_clock();
  wait_for_turns(backend->turns + 6);
  EXPECT_GE(Poller::read_clock() - begin, 5 * 100ms) << "no sleep ends early, on any machine";
}

TEST_F(Idling, SleepsNoLongerThanMaxSleepWithoutAnIdleLimit) {
  using namespace std::chrono_literals;
  start(1ms, {});
  wait_for_turns(200);  // Takes for ever with doubling sleeps.
}

TEST_F(Idling, SleepsBrieflyAgainOnceATurnMovesBytes) {
  using namespace std::chrono_literals;
  start(1ms, 1h);
  wait_for_turns(6);
  backend->moves = true;
  wake->signal();
  wait_for_turns(100);
}

// The caller's request is done, so it makes no further calls that would run turns.
TEST_F(Idling, SleepsBrieflyWhileBytesAreLeftUnsent) {
  using namespace std::chrono_literals;
  start(1ms, 1h);
  wait_for_turns(11);  // The next turn is due in two seconds, and later ones at twice the distance.
  backend->leaves_some = true;
  poller->progress();
  wait_for_turns(200);
}

TEST_F(Idling, WakeEventEndsTheSleep) {
  using namespace std::chrono_literals;
  start(1h, 1h);
  for (int i = 0; i < 100; ++i) {
    const int before = backend->turns;
    wake->signal();
    wait_for_turns(before + 1);
  }
}

}  // namespace
}  // namespace ztcp::comms
