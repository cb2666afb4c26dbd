// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The loop over a backend that only counts.
#include "transport/comms/poller.h"

#include <cstdlib>
#include <memory>
#include <pthread.h>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(int& starts) : starts_(starts) {}
  void start() override { ++starts_; }
  bool turn(TimePoint, Doorbell&) override { return false; }
  TimePoint next_deadline() const override { return kNever; }
  bool is_full() const override { return true; }
  msg::SendSession& connect(Endpoint, const msg::Cookie&, msg::SendOwner&) override {
    std::abort();
  }
  void destroy(msg::SendSession&) override {}
  Status listen(const msg::Cookie&, msg::ListenerEvents&) override { return {}; }
  void unlisten(const msg::Cookie&) override {}
  std::size_t unfinished() const override { return 0; }
  void abandon_payload() override {}
  std::string summary() const override { return "did nothing"; }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  std::string down_advice() const override { return {}; }
  std::string lost_reason() const override { return {}; }
  const char* lost_advice() const override { return ""; }
  Error lost_error() const override { return {}; }

 private:
  int& starts_;
};

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

}  // namespace
}  // namespace ztcp::comms
