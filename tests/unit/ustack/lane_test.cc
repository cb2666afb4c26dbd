// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Poller with a Lane, and test clients in place of connections.
#include "transport/ustack/lane.h"

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <sched.h>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "core/log.h"
#include "tests/support/log_capture.h"
#include "transport/comms/poller.h"
#include "transport/link/memory_link.h"

namespace ztcp::ustack {
namespace {

using comms::Poller;

std::unique_ptr<Lane> lane(const comms::PollerConfig& config, std::unique_ptr<link::Link> link,
                           const EngineConfig& engine) {
  return std::make_unique<Lane>(Poller::read_clock(), config.name, std::move(link), engine);
}

// Rings again inside each on_doorbell(), like another thread that posts without a pause.
class Insatiable final : public comms::Client {
 public:
  explicit Insatiable(Poller& poller) : poller_(poller) {}
  void on_doorbell(TimePoint) override {
    ++heard;
    poller_.ring(index);
  }
  void on_link_lost(TimePoint) override {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}

  std::size_t index = 0;
  int heard = 0;

 private:
  Poller& poller_;
};

TEST(Poller, KickReturnsWhileAClientKeepsRinging) {
  auto [left, right] = link::make_memory_links({});
  EngineConfig engine;
  engine.stack.address = {Ipv4Address{0x0a010001U}, 24};
  comms::PollerConfig config;
  config.name = "mem0";
  Poller poller(config, lane(config, std::move(left), engine));
  auto owned = std::make_unique<Insatiable>(poller);
  Insatiable& client = *owned;
  const auto index = poller.with_backend(
      [&](TimePoint) { return poller.backend().clients().attach(std::move(owned)); });
  ASSERT_TRUE(index);
  client.index = *index;
  poller.ring(*index);
  poller.kick();  // Returning is the test.
  EXPECT_GT(client.heard, 1) << "doorbells rung during the call are served in it";
}

// Rings another client inside on_doorbell(), like a thread that finds the baton taken.
class Forwarding final : public comms::Client {
 public:
  Forwarding(Poller& poller, std::size_t to) : poller_(poller), to_(to) {}
  void on_doorbell(TimePoint) override { poller_.ring(to_); }
  void on_link_lost(TimePoint) override {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}

 private:
  Poller& poller_;
  std::size_t to_;
};

class Counting final : public comms::Client {
 public:
  void on_doorbell(TimePoint) override { ++heard; }
  void on_link_lost(TimePoint) override {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}
  int heard = 0;
};

// No other thread runs a turn: there is no background thread, and the ringing thread has returned.
TEST(Poller, DoorbellRungDuringAControlCallIsServedAtItsEnd) {
  auto [left, right] = link::make_memory_links({});
  EngineConfig engine;
  engine.stack.address = {Ipv4Address{0x0a010001U}, 24};
  comms::PollerConfig config;
  config.name = "mem0";
  Poller poller(config, lane(config, std::move(left), engine));
  auto owned = std::make_unique<Counting>();
  Counting& last = *owned;
  std::size_t first = 0;
  poller.with_backend([&](TimePoint) {
    const auto index = poller.backend().clients().attach(std::move(owned));
    first = *poller.backend().clients().attach(std::make_unique<Forwarding>(poller, *index));
  });
  poller.with_backend([&](TimePoint) { poller.ring(first); });
  EXPECT_EQ(last.heard, 1);
}

// Throws std::bad_alloc inside a turn.
class Hungry final : public comms::Client {
 public:
  void on_doorbell(TimePoint) override { throw std::bad_alloc(); }
  void on_link_lost(TimePoint) override {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}
};

class Turns : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Modes, Turns, testing::Values(false, true),
                         [](const auto& row) { return row.param ? "dedicated" : "shared"; });

TEST_P(Turns, ExceptionInATurnDoesNotEndTheThreadOrLeakTheBaton) {
  auto [left, right] = link::make_memory_links({});
  EngineConfig engine;
  engine.stack.address = {Ipv4Address{0x0a010001U}, 24};
  comms::PollerConfig config;
  config.name = "mem0";
  config.dedicated = GetParam();
  const test::LogCapture log;
  Poller poller(config, lane(config, std::move(left), engine));
  std::size_t hungry = 0;
  auto owned = std::make_unique<Counting>();
  Counting& counting = *owned;
  std::size_t well = 0;
  poller.with_backend([&](TimePoint) {
    hungry = *poller.backend().clients().attach(std::make_unique<Hungry>());
    well = *poller.backend().clients().attach(std::move(owned));
  });
  ASSERT_TRUE(poller.start());
  for (int i = 0; i < 2; ++i) {
    poller.ring(hungry);
    poller.kick();
    poller.with_backend([](TimePoint) {});
  }
  poller.ring(well);
  poller.with_backend([](TimePoint) {});
  poller.stop();
  EXPECT_EQ(counting.heard, 1);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_TRUE(log.warnings()[0].starts_with("mem0: an exception ended a turn: std::bad_alloc"))
      << log.warnings()[0];
}

// NCCL's logger may take a lock, and the lock's owner may be waiting for the baton.
Poller* g_poller = nullptr;
int g_spoken = 0;
bool g_was_free = true;
void try_the_baton(log::Level, const char*, int, const char*) {
  ++g_spoken;
  g_was_free &= g_poller->with_backend_unless([] { return true; }, [](TimePoint) {});
}

TEST(Poller, LogsWithoutHoldingTheBaton) {
  std::atomic<LinkState> state{LinkState::kUp};
  link::MemoryLinkOptions cable;
  cable.states = {&state, nullptr};
  auto [left, right] = link::make_memory_links(cable);
  EngineConfig engine;
  engine.stack.address = {Ipv4Address{0x0a010001U}, 24};
  comms::PollerConfig config;
  config.name = "mem0";
  Poller poller(config, lane(config, std::move(left), engine));
  g_poller = &poller;
  log::bind(try_the_baton);
  state = LinkState::kGone;
  while (!poller.is_lost()) poller.progress();
  log::bind(nullptr);
  EXPECT_EQ(g_spoken, 1);
  EXPECT_TRUE(g_was_free);
}

TEST(Poller, LogsItsCountersWhenTheLastConnectionClosesAndAtTheEnd) {
  auto [left, right] = link::make_memory_links({});
  EngineConfig engine;
  engine.stack.address = {Ipv4Address{0x0a010001U}, 24};
  comms::PollerConfig config;
  config.name = "mem0";
  const test::LogCapture log;
  {
    Poller poller(config, lane(config, std::move(left), engine));
    poller.with_backend([&](TimePoint) {
      const std::size_t first = *poller.backend().clients().attach(std::make_unique<Counting>());
      const std::size_t second = *poller.backend().clients().attach(std::make_unique<Counting>());
      poller.backend().clients().retire(first);
      poller.turn();
      EXPECT_TRUE(log.infos().empty());
      poller.backend().clients().retire(second);
      poller.turn();
      EXPECT_TRUE(log.infos().empty()) << "logged with the baton held";
    });
    // A second close within a minute adds no line: some jobs open and close in a loop.
    poller.with_backend([&](TimePoint) {
      poller.backend().clients().retire(
          *poller.backend().clients().attach(std::make_unique<Counting>()));
    });
  }
  ASSERT_EQ(log.infos().size(), 2U);
  // The one frame is the ARP announcement.
  EXPECT_TRUE(log.infos()[0].starts_with("mem0: no connection is left; so far it sent 1 frames ("))
      << log.infos()[0];
  EXPECT_TRUE(log.infos()[1].starts_with("mem0: closed; it sent 1 frames (")) << log.infos()[1];
}

// A new thread inherits the CPU mask of the thread that starts it, which may be pinned.
TEST(Poller, ThreadRunsOnTheConfiguredCpus) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  auto [left, right] = link::make_memory_links({});
  EngineConfig engine;
  engine.stack.address = {Ipv4Address{0x0a010001U}, 24};
  std::promise<cpu_set_t> found;
  comms::PollerConfig config;
  config.name = "mem0";
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) config.cpus.push_back(cpu);
  config.on_thread_start = [&] {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    found.set_value(set);
  };
  Poller poller(config, lane(config, std::move(left), engine));
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(config.cpus.back(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_TRUE(poller.start());
  }).join();
  const cpu_set_t set = found.get_future().get();
  EXPECT_TRUE(CPU_EQUAL(&set, &all));
}

}  // namespace
}  // namespace ztcp::ustack
