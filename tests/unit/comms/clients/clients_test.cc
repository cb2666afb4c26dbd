// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/clients/clients.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

constexpr TimePoint kNow{std::chrono::seconds(1)};

class TestClient final : public Client {
 public:
  explicit TestClient(int& alive, std::function<void()> on_ring = {})
      : alive_(alive), on_ring_(std::move(on_ring)) {
    ++alive_;
  }
  ~TestClient() override { --alive_; }
  void on_doorbell(TimePoint) override {
    if (on_ring_) on_ring_();
  }
  void on_link_lost(TimePoint) override {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}

 private:
  int& alive_;
  std::function<void()> on_ring_;
};

struct ClientsTest : testing::Test {
  std::size_t attach(std::function<void()> on_ring = {}) {
    return clients.attach(std::make_unique<TestClient>(alive, std::move(on_ring))).value();
  }
  std::size_t count() {
    std::size_t visits = 0;
    clients.for_each([&](Client&) { ++visits; });
    return visits;
  }
  int alive = 0;
  Clients clients{3};
};

TEST_F(ClientsTest, RingForAnIndexWithoutClientIsIgnored) {
  EXPECT_FALSE(clients.on_doorbell(0, kNow));
  int rung = 0;
  const std::size_t index = attach([&] { ++rung; });
  EXPECT_TRUE(clients.on_doorbell(index, kNow));
  EXPECT_EQ(rung, 1);
  clients.retire(index);
  clients.reap_retired();
  EXPECT_FALSE(clients.on_doorbell(index, kNow));
  EXPECT_EQ(rung, 1);
}

// The event of its session has not returned yet.
TEST_F(ClientsTest, ClientThatRetiresInsideItsEventLivesUntilReaped) {
  std::size_t index = 0;
  index = attach([&] {
    clients.retire(index);
    EXPECT_EQ(alive, 1);
  });
  EXPECT_TRUE(clients.on_doorbell(index, kNow));
  EXPECT_TRUE(clients.has_retired());
  EXPECT_EQ(alive, 1);
  EXPECT_FALSE(clients.is_empty());
  clients.reap_retired();
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(clients.is_empty());
  EXPECT_FALSE(clients.has_retired());
}

TEST_F(ClientsTest, IndexIsReusedOnlyAfterItsClientIsReaped) {
  const std::size_t first = attach();
  clients.retire(first);
  const std::size_t second = attach();
  EXPECT_NE(second, first);
  clients.reap_retired();
  EXPECT_EQ(attach(), first);
}

TEST_F(ClientsTest, AttachFailsWithFullAtTheCapacity) {
  for (int i = 0; i < 3; ++i) attach();
  const auto refused = clients.attach(std::make_unique<TestClient>(alive));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kFull);
  EXPECT_EQ(alive, 3);
  clients.retire(1);
  clients.reap_retired();
  EXPECT_EQ(attach(), 1U);
}

// A lost link ends clients inside the visit, and a client that ends may attach another.
TEST_F(ClientsTest, VisitMayAttachAndRetireClients) {
  attach();
  attach();
  bool has_attached = false;
  std::size_t visits = 0;
  clients.for_each([&](Client&) {
    clients.retire(visits++);
    if (!std::exchange(has_attached, true)) attach();
  });
  EXPECT_EQ(visits, 3U);
  clients.reap_retired();
  EXPECT_TRUE(clients.is_empty());
  EXPECT_EQ(count(), 0U);
}

TEST_F(ClientsTest, ClearDestroysAllClients) {
  attach();
  clients.retire(attach());
  clients.clear();
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(clients.is_empty());
}

}  // namespace
}  // namespace ztcp::comms
