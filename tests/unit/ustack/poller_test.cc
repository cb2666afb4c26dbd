// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The loop by itself, with clients that are no connections.
#include "transport/ustack/poller.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "transport/link/memory_link.h"

namespace ztcp::ustack {
namespace {

// Rings again whenever it was heard, as another thread does that posts without a pause.
class Insatiable final : public PollerClient {
 public:
  explicit Insatiable(Poller& poller) : poller_(poller) {}
  void on_doorbell(TimePoint) override {
    ++heard;
    poller_.ring(index);
  }
  void on_link_gone(TimePoint) override {}

  std::size_t index = 0;
  int heard = 0;

 private:
  Poller& poller_;
};

TEST(Poller, ACallReturnsWhileOthersPost) {
  auto [left, right] = link::make_memory_links({});
  EngineConfig engine;
  engine.stack.address = {{0x0a010001U}, 24};
  PollerConfig config;
  config.name = "mem0";
  Poller poller(config, std::move(left), engine);
  auto owned = std::make_unique<Insatiable>(poller);
  Insatiable& client = *owned;
  const auto index =
      poller.with_engine([&](Engine&, TimePoint) { return poller.attach(std::move(owned)); });
  ASSERT_TRUE(index);
  client.index = *index;
  poller.ring(*index);
  poller.kick();  // Returning is the test.
  EXPECT_GT(client.heard, 1) << "what was rung meanwhile is sent in the same call";
}

}  // namespace
}  // namespace ztcp::ustack
