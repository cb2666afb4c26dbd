// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/process_end.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/comms/counting_backend.h"

namespace ztcp::comms {
namespace {

using namespace std::chrono_literals;

class TestNic final : public Nic {
 public:
  TestNic() : Nic("mem0") {}
  PeerHandle issue_handle(const msg::Cookie&) override { return {}; }
};

class ProcessEnd : public testing::Test {
 protected:
  Poller& add(PollerConfig config = {}) {
    config.name = "mem0";
    auto backend = std::make_unique<CountingBackend>(starts_);
    backends.push_back(backend.get());
    nics.push_back(std::make_shared<TestNic>());
    nics.back()->pollers.push_back(std::make_unique<Poller>(std::move(config), std::move(backend)));
    EXPECT_TRUE(nics.back()->pollers.front()->start());
    return *nics.back()->pollers.front();
  }

  std::vector<std::shared_ptr<TestNic>> nics;
  std::vector<CountingBackend*> backends;
  std::mutex mutex;

 private:
  int starts_ = 0;
};

// The thread that drains may have been interrupted in malloc(), or may hold any lock.
TEST_F(ProcessEnd, GoodbyeIsSaidByThePollersOwnThreads) {
  for (const bool dedicated : {true, false}) {
    PollerConfig config;
    config.dedicated = dedicated;
    config.max_idle_sleep = 1h;
    config.max_sleep = 1h;
    add(config);
  }
  nics.push_back(nullptr);  // Another process has this NIC.
  drain(nics, mutex, 100s);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(nics[i]->pollers.front()->has_ended_process());
    EXPECT_NE(backends[i]->asked_by.load(), std::thread::id());
    EXPECT_NE(backends[i]->asked_by.load(), std::this_thread::get_id());
  }
  drain(nics, mutex, 0s);
}

// A signal handler that interrupts a turn on its thread calls exit().
TEST_F(ProcessEnd, DrainInsideATurnEndsAtItsTimeout) {
  Poller& poller = add();
  poller.with_backend([&](TimePoint) { drain(nics, mutex, 20ms); });
  EXPECT_EQ(backends[0]->asked_by.load(), std::thread::id());
}

TEST_F(ProcessEnd, DrainWithTheMutexHeldEndsAtItsTimeout) {
  add();
  const std::lock_guard lock(mutex);
  std::thread([&] { drain(nics, mutex, 20ms); }).join();
  EXPECT_EQ(backends[0]->asked_by.load(), std::thread::id());
}

// A logger may have ended the thread, for example.
TEST_F(ProcessEnd, CallerSaysGoodbyeWhenThePollersThreadHasEnded) {
  PollerConfig config;
  std::atomic<bool> has_started = false;
  config.on_thread_start = [&] {
    has_started = true;
    pthread_exit(nullptr);
  };
  Poller& poller = add(config);
  while (!has_started.load()) std::this_thread::yield();
  drain(nics, mutex, 2s);
  if (!poller.has_ended_process()) drain(nics, mutex, 2s);  // The thread was still ending.
  EXPECT_TRUE(poller.has_ended_process());
  EXPECT_EQ(backends[0]->asked_by.load(), std::this_thread::get_id());
}

TEST_F(ProcessEnd, CallerSaysGoodbyeWhenThePollerIsStopped) {
  Poller& poller = add();
  poller.stop();
  drain(nics, mutex, 100s);
  EXPECT_TRUE(poller.has_ended_process());
  EXPECT_EQ(backends[0]->asked_by.load(), std::this_thread::get_id());
}

// A logger may call exit() on the poller's thread.
TEST_F(ProcessEnd, DrainOnThePollersThreadDoesNotWaitForItself) {
  PollerConfig config;
  std::atomic<bool> has_ended = false;
  std::atomic<bool> may_start = false;
  config.on_thread_start = [&] {
    while (!may_start.load()) std::this_thread::yield();
    drain(nics, mutex, 100s);
    has_ended = true;
  };
  add(config);
  may_start = true;
  while (!has_ended.load()) std::this_thread::yield();
}

}  // namespace
}  // namespace ztcp::comms
