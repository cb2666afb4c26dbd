// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The loop over a backend that only counts.
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

#include "tests/support/log_capture.h"
#include "tests/unit/comms/counting_backend.h"
#include "transport/core/log.h"
#include "transport/core/yielder.h"

namespace ztcp::comms {
namespace {

// No thread can be had while one exists: none has room for such a stack.
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

TEST(Poller, ThatCouldNotStartStartsWhatIsBehindItOnceAllTheSame) {
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

// The caller's thread, which has given the baton before it logs: others go on.
TEST(Poller, LetsALoggerEndTheThreadThatLogs) {
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

// A process that is stopped in the middle of a turn, whose deadlines were computed from the time
// before: they are no nearer when it goes on.
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

// A thread that had no CPU for a while: it says so beside its counts.
TEST(Poller, ThreadThatRunsLate_SaysSoWhenItIsClosed) {
  using namespace std::chrono_literals;
  const test::LogCapture log;
  int starts = 0;
  std::atomic<int> looks{0};
  {
    PollerConfig config;
    config.name = "mem0";
    config.dedicated = true;
    config.on_look = [&](TimePoint) {
      if (++looks == 3) std::this_thread::sleep_for(20ms);
    };
    Poller poller(config, std::make_unique<CountingBackend>(starts));
    poller.with_backend([&](TimePoint) { poller.note_outstanding(1); });  // It does not sleep.
    ASSERT_TRUE(poller.start());
    while (looks < 5) std::this_thread::sleep_for(1ms);
  }
  ASSERT_FALSE(log.infos().empty());
  EXPECT_THAT(log.infos().back(),
              testing::MatchesRegex("mem0: closed; it did nothing, and its thread ran late "
                                    "[0-9]+ times?, by up to [0-9]+[.][0-9] ms"));
}

// The background thread of one that nobody else drives.
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
  // Bounded by the test's own time limit.
  void wait_for_turns(int count) const {
    while (backend->turns < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::shared_ptr<WakeEvent> wake;
  CountingBackend* backend = nullptr;
  std::optional<Poller> poller;

 private:
  int starts_ = 0;
};

TEST_F(Idling, SleepsLongerAndLonger) {
  using namespace std::chrono_literals;
  start(1ms, 100ms);
  wait_for_turns(8);  // After 2, 4, 8 ... 64 and 100 ms.
  const TimePoint begin = Poller::read_clock();
  wait_for_turns(backend->turns + 6);
  EXPECT_GE(Poller::read_clock() - begin, 5 * 100ms) << "no sleep ends early, on any machine";
}

TEST_F(Idling, SleepsNoLongerThanItsLongestSleepWhereNothingElseIsSaid) {
  using namespace std::chrono_literals;
  start(1ms, {});
  wait_for_turns(200);  // As sleeps that double never would.
}

TEST_F(Idling, SleepsShortAgainOnceSomethingMoves) {
  using namespace std::chrono_literals;
  start(1ms, 1h);
  wait_for_turns(6);
  backend->moves = true;
  wake->signal();
  wait_for_turns(100);
}

// Its caller has been told that it is done, and asks no more.
TEST_F(Idling, StaysNearWhereSomethingIsLeftUnsent) {
  using namespace std::chrono_literals;
  start(1ms, 1h);
  wait_for_turns(11);  // The next in two seconds, and twice as long after each.
  backend->leaves_some = true;
  poller->progress();
  wait_for_turns(200);
}

TEST_F(Idling, IsWokenByWhoHasSomethingForIt) {
  using namespace std::chrono_literals;
  start(1h, 1h);
  for (int i = 0; i < 100; ++i) {
    const int before = backend->turns;
    wake->signal();
    wait_for_turns(before + 1);
  }
}

// Turns move bytes as long as there are some, and note whether the thread that made it runs them.
class LadenBackend final : public CountingBackend {
 public:
  explicit LadenBackend(int& starts) : CountingBackend(starts) {}
  bool turn(TimePoint now, Doorbell& doorbell) override {
    using namespace std::chrono_literals;
    doorbell.drain([&](std::size_t client) {
      rings.fetch_add(1);
      rings_of[client].fetch_add(1);
    });
    ++turns;
    if (std::this_thread::get_id() == maker_) {
      turns_elsewhere = 0;
    } else {
      ++turns_elsewhere;
      const bool is_long_idle = last_ - last_moved_ > 300us;  // Where it rests between turns.
      if (is_long_idle && now - last_ < 50us) ++hasty_turns;
      last_ = now;
    }
    moved_ = bytes_each_turn.load();
    if (moved_ != 0) last_moved_ = now;
    return moved_ != 0;
  }
  std::uint64_t moved_bytes() const override { return moved_; }

  std::atomic<std::uint64_t> bytes_each_turn{0};
  std::atomic<int> rings{0};
  std::array<std::atomic<int>, 4> rings_of{};
  std::atomic<std::uint64_t> turns_elsewhere{0};  // In a row.
  std::atomic<int> hasty_turns{0};

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  std::uint64_t moved_ = 0;
  TimePoint last_{};
  TimePoint last_moved_{};
};

class TakingOver : public testing::Test {
 protected:
  // By default nobody takes turns back, on whatever machine.
  explicit TakingOver(Duration stall_patience = std::chrono::hours(1)) {
    PollerConfig config;
    config.name = "mem0";
    config.takes_over = true;
    config.stall_patience = stall_patience;
    config.on_look = [this](TimePoint) { on_look(); };
    auto owned = std::make_unique<LadenBackend>(starts_);
    backend = owned.get();
    poller.emplace(config, std::move(owned));
  }
  // The thread calls on_look() between the two.
  void SetUp() override { ASSERT_TRUE(poller->start()); }
  void TearDown() override {
    if (poller) poller->stop();
  }
  // Bounded by the test's own time limit.
  template <class Is>
  void wait_until(Is&& is) {
    while (!is()) {
      poller->progress();
      yielder.yield();
    }
  }
  // On the background thread, without the baton: as between two turns.
  virtual void on_look() {}
  bool is_driven_here() const { return backend->turns_elsewhere == 0; }
  // So many turns would take a thread that only stands in for this one a second.
  void wait_until_taken_over() {
    wait_until([&] { return backend->turns_elsewhere > 1000; });
  }

  int starts_ = 0;
  Yielder yielder;
  LadenBackend* backend = nullptr;
  std::optional<Poller> poller;
};

TEST_F(TakingOver, LittleIsMovedByWhoeverAsks) {
  backend->bytes_each_turn = 12U << 10;
  for (int i = 1; i <= 1000; ++i) {
    poller->ring(0);
    poller->kick();
    wait_until([&] { return backend->rings.load() == i; });
  }
  wait_until([&] { return is_driven_here(); });
}

TEST_F(TakingOver, MuchIsMovedByTheBackgroundThread) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  // Nobody else runs a turn, and what is rung meanwhile is heard.
  for (int i = 0; i < 100; ++i) {
    const int before = backend->rings.load();
    poller->ring(0);
    poller->kick();
    wait_until([&] { return backend->rings.load() != before; });
    EXPECT_FALSE(is_driven_here());
  }
}

TEST_F(TakingOver, ItGivesTurnsBackWhenThereIsNoMore) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  backend->bytes_each_turn = 0;
  wait_until([&] { return is_driven_here(); });
  const int before = backend->rings.load();
  poller->ring(0);
  poller->kick();
  wait_until([&] { return backend->rings.load() == before + 1; });
}

// It stays for the next half of a collective, but burns no CPU for it. Whoever gives up runs one
// turn more, at once.
TEST_F(TakingOver, ItRestsWhileNothingComes) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  backend->bytes_each_turn = 0;
  wait_until([&] { return is_driven_here(); });
  poller->stop();
  EXPECT_LE(backend->hasty_turns, 1);
}

TEST_F(TakingOver, ItEndsWhileItDrives) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  poller->stop();
}

// The background thread is scheduled out between two turns, as long as the test wants.
class StallingWhileTakenOver : public TakingOver {
 protected:
  StallingWhileTakenOver() : TakingOver(std::chrono::milliseconds(20)) {}
  void TearDown() override {
    lets_it_run = true;
    TakingOver::TearDown();
  }
  void on_look() override {
    while (!lets_it_run) yielder.yield();
  }

  std::atomic<bool> lets_it_run{true};
};

TEST_F(StallingWhileTakenOver, WhoAsksTakesTurnsBackUntilItRunsAgain) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  lets_it_run = false;
  wait_until([&] { return is_driven_here(); });
  for (int i = 0; i < 100; ++i) {
    const int before = backend->rings.load();
    poller->ring(0);
    poller->kick();
    wait_until([&] { return backend->rings.load() != before; });
  }
  lets_it_run = true;
  wait_until_taken_over();
  const test::LogCapture log;
  poller.reset();
  ASSERT_FALSE(log.infos().empty());
  EXPECT_THAT(log.infos().back(), testing::HasSubstr("its thread ran late"));
}

// At each look, which is once a millisecond, it stands still until another has run a turn.
class StallingOften : public TakingOver {
 protected:
  StallingOften() : TakingOver(std::chrono::microseconds(50)) {}
  void TearDown() override {
    ends = true;
    TakingOver::TearDown();
  }
  void on_look() override {
    const int before = backend->turns;
    while (!ends && backend->turns == before) yielder.yield();
    ++stalls;
  }

  std::atomic<bool> ends{false};
  std::atomic<int> stalls{0};
};

TEST_F(StallingOften, NoRingIsLost) {
  backend->bytes_each_turn = 1U << 20;
  // Beside many busy threads a stall takes as long as all of these threads wait for a CPU.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto is_over = [&] {
    return stalls >= 30 || (stalls >= 3 && std::chrono::steady_clock::now() > patience);
  };
  std::vector<std::thread> threads;
  for (std::size_t client = 0; client < 3; ++client)
    threads.emplace_back([&, client] {
      for (int i = 1; !is_over(); ++i) {
        poller->ring(client);
        poller->kick();
        wait_until([&] { return backend->rings_of[client] == i; });
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ztcp::comms
