// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A receiving session with real copying threads, one of which can be stopped for any time: that
// costs time only, and no wrong event.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/worker_threads.h"
#include "tests/unit/msg/acceptor_fixture.h"
#include "tests/unit/msg/lazy_workers.h"

namespace ztcp::msg {
namespace {

// Records that a wait was long.
struct Watched final : Workers {
  explicit Watched(WorkerThreads& its_threads) : threads(its_threads) {}
  std::size_t count() const override { return threads.count(); }
  void wake(std::size_t worker) override { threads.wake(worker); }
  bool wait_for(std::size_t worker) override {
    if (++waits == 1000) on_long_wait();
    return threads.wait_for(worker);
  }

  WorkerThreads& threads;
  std::size_t waits = 0;
  std::function<void()> on_long_wait = [] {};
};

class CopiesThreads : public AcceptorTest {
 protected:
  static constexpr std::size_t kWorkers = 3;
  static constexpr std::size_t kStuck = 0;  // The first one that is given jobs.
  static constexpr std::size_t kStretchBytes = 16U << 10;

  void SetUp() override {
    acceptor = std::make_unique<Acceptor>(settings, ClusterKey{}, 8,
                                          std::array<std::uint64_t, 2>{1, 2}, &jobs_);
    ASSERT_TRUE(acceptor->add_listener(kCookie, *this));
    loans_.left = 100'000;
    // It stops while it has a job.
    ASSERT_TRUE(threads_.start(kWorkers, {.name = "test-w", .cpus = {}, .spin = {}},
                               [this](std::size_t worker) {
                                 if (worker == kStuck && is_stopped_.load()) {
                                   has_stopped_.store(true);
                                   go_on_.wait();
                                 }
                                 return jobs_.work(worker);
                               }));
  }
  void TearDown() override {
    if (!go_on_.try_wait()) go_on_.count_down();
    sessions.clear();
    threads_.stop();
  }
  // One message of a pattern, in its frames.
  void hear_message(Peer& peer, std::uint64_t number, const std::vector<std::byte>& bytes) {
    peer.say(Chunk{false, static_cast<std::uint32_t>(bytes.size()), number, 0, bytes.size()});
    constexpr std::size_t kFrameBytes = 8948;
    for (std::size_t at = 0; at < bytes.size(); at += kFrameBytes) {
      peer.hear(std::span(bytes).subspan(at, std::min(kFrameBytes, bytes.size() - at)));
      jobs_.publish();
      jobs_.collect(now);
    }
  }
  static std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed) {
    std::vector<std::byte> out(size);
    for (std::size_t i = 0; i < size; ++i)
      out[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 11U);
    return out;
  }

  std::atomic<bool> is_stopped_{false};
  std::atomic<bool> has_stopped_{false};
  std::latch go_on_{1};
  WorkerThreads threads_;
  Watched workers_{threads_};
  Loans loans_;
  CopyJobs jobs_{{.workers = kWorkers,
                  .least_message_bytes = 1,
                  .least_piece_bytes = 1,
                  .stretch_bytes = kStretchBytes},
                 workers_,
                 loans_};
};

TEST_F(CopiesThreads, AWorkerThatIsNotScheduledCostsTimeOnly) {
  Peer& peer = greet();
  const std::vector<std::byte> sent = pattern(4U << 20, 1);
  const std::vector<std::byte> other = pattern(1U << 20, 2);
  std::vector<std::byte> received(sent.size());
  std::vector<std::byte> received_too(other.size());
  is_stopped_ = true;
  post(received, 1);
  hear_message(peer, 0, sent);
  while (!has_stopped_) jobs_.publish();
  // Sessions without pieces at that worker go on: its full ring is skipped.
  while (jobs_.collect(now)) {
  }
  EXPECT_TRUE(done.empty()) << "some of it is with the one that has stopped";
  EXPECT_NE(received, sent);
  post(received_too, 2);
  hear_message(peer, 1, other);
  is_stopped_ = false;
  go_on_.count_down();
  while (done.size() < 2) jobs_.collect(now);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(received_too, other);
  EXPECT_TRUE(failures.empty());
}

// The owner gets its memory back when no thread uses it any more, not earlier.
TEST_F(CopiesThreads, EndingASessionWaitsForTheWorker) {
  Peer& peer = greet();
  const std::vector<std::byte> sent = pattern(4U << 20, 3);
  std::vector<std::byte> received(sent.size());
  is_stopped_ = true;
  post(received, 1);
  hear_message(peer, 0, sent);
  while (!has_stopped_) jobs_.publish();
  workers_.on_long_wait = [this] {
    is_stopped_ = false;
    go_on_.count_down();
  };
  sessions[0]->abort();
  EXPECT_FALSE(is_stopped_) << "abort() came back while a worker had some of the buffer";
  std::fill(received.begin(), received.end(), std::byte{0xaa});
  while (!jobs_.is_idle()) jobs_.collect(now);
  EXPECT_EQ(received, std::vector<std::byte>(received.size(), std::byte{0xaa}));
}

}  // namespace
}  // namespace ztcp::msg
