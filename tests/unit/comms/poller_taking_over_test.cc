// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A poller with a background thread that takes over while there is much to move.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log.h"
#include "core/yielder.h"
#include "tests/support/log_capture.h"
#include "tests/unit/comms/counting_backend.h"
#include "transport/comms/poller.h"

namespace ztcp::comms {
namespace {

// Each turn moves bytes_each_turn bytes, and notes whether it runs on the thread that constructed
// this backend.
class LadenBackend final : public CountingBackend {
 public:
  explicit LadenBackend(int& starts) : CountingBackend(starts) {}
  TurnOutcome turn(TimePoint now, Doorbell& doorbell) override {
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
      const bool is_long_idle = last_ - last_moved_ > 300us;  // The thread sleeps between turns.
      if (is_long_idle && now - last_ < 50us) ++hasty_turns;
      last_ = now;
    }
    const std::uint64_t moved_bytes = bytes_each_turn.load();
    if (moved_bytes != 0) last_moved_ = now;
    return {.moved = moved_bytes != 0, .moved_bytes = moved_bytes};
  }

  std::atomic<std::uint64_t> bytes_each_turn{0};
  std::atomic<int> rings{0};
  std::array<std::atomic<int>, 4> rings_of{};
  std::atomic<std::uint64_t> turns_elsewhere{0};  // In a row.
  std::atomic<int> hasty_turns{0};

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  TimePoint last_{};
  TimePoint last_moved_{};
};

class TakingOver : public testing::Test {
 protected:
  // By default no thread takes turns back, even on the slowest machine.
  explicit TakingOver(Duration stall_timeout = std::chrono::hours(1)) {
    PollerConfig config;
    config.name = "mem0";
    config.takes_over = true;
    config.stall_timeout = stall_timeout;
    config.on_check = [this](TimePoint) { on_check(); };
    auto owned = std::make_unique<LadenBackend>(starts_);
    backend = owned.get();
    poller.emplace(config, std::move(owned));
  }
  // Not in the constructor: the thread calls the virtual on_check().
  void SetUp() override { ASSERT_TRUE(poller->start()); }
  void TearDown() override {
    if (poller) poller->stop();
  }
  // Bounded by the time limit of the test run.
  template <class Is>
  void wait_until(Is&& is) {
    while (!is()) {
      poller->progress();
      yielder.yield();
    }
  }
  // Called on the background thread between two turns, without the baton.
  virtual void on_check() {}
  bool is_driven_here() const { return backend->turns_elsewhere == 0; }
  // A background thread that has not taken over would need a second for so many turns.
  void wait_until_taken_over() {
    wait_until([&] { return backend->turns_elsewhere > 1000; });
  }

  int starts_ = 0;
  Yielder yielder;
  LadenBackend* backend = nullptr;
  std::optional<Poller> poller;
};

TEST_F(TakingOver, FewBytesAreMovedByTheCallers) {
  backend->bytes_each_turn = 12U << 10;
  for (int i = 1; i <= 1000; ++i) {
    poller->ring(0);
    poller->kick();
    wait_until([&] { return backend->rings.load() == i; });
  }
  wait_until([&] { return is_driven_here(); });
}

TEST_F(TakingOver, ManyBytesAreMovedByTheBackgroundThread) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  // No other thread runs a turn, and each ring is served.
  for (int i = 0; i < 100; ++i) {
    const int before = backend->rings.load();
    poller->ring(0);
    poller->kick();
    wait_until([&] { return backend->rings.load() != before; });
    EXPECT_FALSE(is_driven_here());
  }
}

TEST_F(TakingOver, ThreadGivesTurnsBackWhenNothingMovesAnyMore) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  backend->bytes_each_turn = 0;
  wait_until([&] { return is_driven_here(); });
  const int before = backend->rings.load();
  poller->ring(0);
  poller->kick();
  wait_until([&] { return backend->rings.load() == before + 1; });
}

// The thread stays for the next half of a collective, but sleeps between its turns. When it gives
// the turns back it runs one more at once.
TEST_F(TakingOver, ThreadSleepsBetweenTurnsWhileNothingMoves) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  backend->bytes_each_turn = 0;
  wait_until([&] { return is_driven_here(); });
  poller->stop();
  EXPECT_LE(backend->hasty_turns, 1);
}

TEST_F(TakingOver, StopEndsAThreadThatHasTakenOver) {
  backend->bytes_each_turn = 1U << 20;
  wait_until_taken_over();
  poller->stop();
}

// The background thread is stopped between two turns while lets_it_run is false.
class StallingWhileTakenOver : public TakingOver {
 protected:
  StallingWhileTakenOver() : TakingOver(std::chrono::milliseconds(20)) {}
  void TearDown() override {
    lets_it_run = true;
    TakingOver::TearDown();
  }
  void on_check() override {
    while (!lets_it_run) yielder.yield();
  }

  std::atomic<bool> lets_it_run{true};
};

TEST_F(StallingWhileTakenOver, CallersTakeTurnsBackUntilTheThreadRunsAgain) {
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
  // When the thread runs again, another one runs turns all the time.
  std::atomic<bool> ends{false};
  std::thread other([&] { wait_until([&] { return ends.load(); }); });
  lets_it_run = true;
  wait_until_taken_over();
  ends = true;
  other.join();
  const test::LogCapture log;
  poller.reset();
  ASSERT_FALSE(log.infos().empty());
  EXPECT_THAT(log.infos().back(), testing::HasSubstr("its thread ran late"));
}

// At each look, once a millisecond, the background thread stalls until another has run a turn.
class StallingOften : public TakingOver {
 protected:
  StallingOften() : TakingOver(std::chrono::microseconds(50)) {}
  void TearDown() override {
    ends = true;
    TakingOver::TearDown();
  }
  void on_check() override {
    const int before = backend->turns;
    while (!ends && backend->turns == before) yielder.yield();
    ++stalls;
  }

  std::atomic<bool> ends{false};
  std::atomic<int> stalls{0};
};

TEST_F(StallingOften, NoRingIsLostWhenTurnsAreTakenBack) {
  backend->bytes_each_turn = 1U << 20;
  // On a busy machine a stall takes as long as all of these threads wait for a CPU.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto is_over = [&] {
    return stalls >= 30 || (stalls >= 3 && std::chrono::steady_clock::now() > deadline);
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
