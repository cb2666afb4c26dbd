// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The statistics page as connections over RDMA devices in memory feed it.
#include <algorithm>
#include <chrono>
#include <thread>

#include "core/host_name.h"
#include "tests/unit/verbs/connections.h"
#include "tests/unit/verbs/process_page.h"
#include "tests/unit/verbs/rails_fixture.h"
#include "transport/stats/communicator_times.h"

namespace ztcp::verbs {
namespace {

using stats::Counter;
using stats::Snapshot;
using stats::Waiting;
using stats::Way;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint32_t kFrom = 0;
constexpr std::uint32_t kTo = 1;

// Device 0 sends to device 1.
class VerbsPageTest : private ProcessPage, public Connections {
 protected:
  VerbsPageTest()
      : ProcessPage({"ztcp-fake0", "ztcp-fake1"}),
        Connections({roce_device("fake0", 1), roce_device("fake1", 2)}) {}
  using ProcessPage::read;
  using ProcessPage::read_until;

  // Another transport, with these settings.
  void restart() {
    transport_.reset();
    transport_ = host_.start();
  }
};

TEST_F(VerbsPageTest, ListsConnectionsWithTheirRailsAndMessages) {
  test::Pair pair = this->pair();
  constexpr std::size_t kSize = 10'000;
  for (std::uint64_t i = 0; i < 5; ++i) exchange(pair, kSize, i);
  const Snapshot snapshot = read_until([](const Snapshot& now) {
    return count(now, kFrom, Counter::kSentMessages) == 5 &&
           count(now, kTo, Counter::kReceivedMessages) == 5 && now.flows.size() == 2;
  });
  ASSERT_EQ(snapshot.connections.size(), 2U);
  for (const Way way : {Way::kSend, Way::kReceive}) {
    const stats::Connection* const connection = connection_of(snapshot, way);
    ASSERT_NE(connection, nullptr);
    EXPECT_EQ(connection->device, way == Way::kSend ? kFrom : kTo);
    EXPECT_EQ(connection->state, "open");
    EXPECT_THAT(connection->peer, StartsWith("127.0.0.1:"));
    EXPECT_EQ(connection->peer_host, own_host_name().view());
    EXPECT_EQ(connection->messages, 5U);
    EXPECT_EQ(connection->bytes, 5 * kSize);
    EXPECT_EQ(connection->messages_in_flight, 0U);
    EXPECT_EQ(connection->waiting, Waiting::kNothing);
    const auto flow = std::ranges::find(snapshot.flows, connection->id, &stats::Flow::connection);
    ASSERT_NE(flow, snapshot.flows.end());
    EXPECT_EQ(flow->state, "up");
    EXPECT_EQ(flow->local, way == Way::kSend ? "fake0 port 1" : "fake1 port 1");
    EXPECT_THAT(flow->remote, StartsWith(way == Way::kSend ? "fake1 " : "fake0 "));
    EXPECT_EQ(flow->sent_bytes, way == Way::kSend ? 5 * kSize : 0);
    EXPECT_EQ(flow->received_bytes, way == Way::kSend ? 0 : 5 * kSize);
    const auto latency = std::ranges::find(snapshot.latencies, way, &stats::Latency::way);
    ASSERT_NE(latency, snapshot.latencies.end());
    EXPECT_EQ(latency->peer, "127.0.0.1");
    EXPECT_EQ(stats::total(latency->by_class[stats::size_class_of(kSize)]), 5U);
  }
  ASSERT_EQ(snapshot.lanes.size(), 2U);
  EXPECT_EQ(lane_of(snapshot, kFrom).connections, 1U);
  EXPECT_EQ(lane_of(snapshot, kFrom).cpu, -1) << "no thread is the device's own";
  EXPECT_EQ(count(snapshot, kFrom, Counter::kConnectionsOpened), 1U);
  EXPECT_EQ(count(snapshot, kTo, Counter::kConnectionsAccepted), 1U);
  EXPECT_EQ(count(snapshot, kFrom, Counter::kSentBytes), 5 * kSize);
  EXPECT_EQ(count(snapshot, kTo, Counter::kReceivedBytes), 5 * kSize);
  EXPECT_GE(count(snapshot, kFrom, Counter::kCompletions), 5U);
  EXPECT_GE(count(snapshot, kTo, Counter::kCompletions), 5U);
  EXPECT_EQ(count(snapshot, kFrom, Counter::kConnectionsFailed), 0U);
  EXPECT_EQ(snapshot.devices[0].link, stats::LinkStatus::kUp);
}

TEST_F(VerbsPageTest, TimesOneInSixteenSmallMessages) {
  test::Pair pair = this->pair();
  for (std::uint64_t i = 0; i < 48; ++i) exchange(pair, 8, i);
  for (const stats::Latency& latency : read().latencies)
    EXPECT_EQ(stats::total(latency.by_class[0]), 3U) << static_cast<int>(latency.way);
}

TEST_F(VerbsPageTest, EndedConnectionsAreNoLongerListedAndStayCounted) {
  test::Pair pair = this->pair();
  exchange(pair, 1000, 1);
  pair = {};
  const Snapshot snapshot = read_until([](const Snapshot& now) {
    return now.connections.empty() && count(now, kFrom, Counter::kSentMessages) == 1 &&
           lane_of(now, kFrom).connections == 0;
  });
  EXPECT_TRUE(snapshot.flows.empty());
  EXPECT_EQ(count(snapshot, kFrom, Counter::kSentBytes), 1000U);
  EXPECT_EQ(count(snapshot, kTo, Counter::kReceivedMessages), 1U);
  EXPECT_EQ(count(snapshot, kFrom, Counter::kConnectionsFailed), 0U);
}

TEST_F(VerbsPageTest, ASendWaitsForThePeersReceive) {
  test::Pair pair = this->pair();
  test::Bytes from(100);
  MemoryKey* const key = register_host(*pair.sender, from);
  const Snapshot snapshot = read_until(
      [](const Snapshot& now) {
        return waits(now, Way::kSend, Waiting::kPeerReceive) &&
               connection_of(now, Way::kSend)->credit_stall_ns > 0;
      },
      [&] { EXPECT_EQ(*pair.sender->post_send(from, 0, key), nullptr); });
  const stats::Connection& connection = *connection_of(snapshot, Way::kSend);
  EXPECT_EQ(connection.messages_in_flight, 1U);
  EXPECT_EQ(connection.credit_stalls, 1U);
  EXPECT_GT(connection.oldest_ns, 0U);
  EXPECT_EQ(count(snapshot, kFrom, Counter::kCreditStalls), 1U);
  EXPECT_TRUE(pair.sender->deregister_memory(key));
}

TEST_F(VerbsPageTest, TheLatencyOfASendBeginsWithTheFirstAttempt) {
  test::Pair pair = this->pair();
  test::Bytes from(10'000);
  MemoryKey* const key = register_host(*pair.sender, from);
  ASSERT_EQ(*pair.sender->post_send(from, 0, key), nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  exchange(pair, from.size(), 1);
  const Snapshot snapshot = read();
  const auto latency = std::ranges::find(snapshot.latencies, Way::kSend, &stats::Latency::way);
  ASSERT_NE(latency, snapshot.latencies.end());
  EXPECT_GE(stats::quantile_ns(latency->by_class[stats::size_class_of(from.size())], 0.5),
            20'000'000U);
  EXPECT_TRUE(pair.sender->deregister_memory(key));
}

TEST_F(VerbsPageTest, AReceiveWaitsForThePeersData) {
  test::Pair pair = this->pair();
  test::Bytes to(100);
  MemoryKey* const key = register_host(*pair.receiver, to);
  Request* const receive = *test::post_recv(*pair.receiver, to, key);
  ASSERT_NE(receive, nullptr);
  const Snapshot snapshot = read_until(
      [](const Snapshot& now) {
        return waits(now, Way::kReceive, Waiting::kPeerData) &&
               connection_of(now, Way::kReceive)->oldest_ns > 0 &&
               lane_of(now, kTo).queue_depth == 1;
      },
      [&] { EXPECT_FALSE(*receive->test({})); });
  EXPECT_EQ(connection_of(snapshot, Way::kReceive)->messages_in_flight, 1U);
  EXPECT_TRUE(pair.receiver->deregister_memory(key));
}

TEST_F(VerbsPageTest, AMessageForWhoseEndNoThreadAsksWaitsForThisHost) {
  test::Pair pair = this->pair();
  test::Bytes to(100);
  MemoryKey* const key = register_host(*pair.receiver, to);
  ASSERT_NE(*test::post_recv(*pair.receiver, to, key), nullptr);
  read_until([](const Snapshot& now) { return waits(now, Way::kReceive, Waiting::kThisHost); });
  EXPECT_TRUE(pair.receiver->deregister_memory(key));
}

TEST_F(VerbsPageTest, StalledMessagesAreLogged) {
  host_.fabric.monitor.stalled_ms = 100;
  restart();
  test::Pair pair = this->pair();
  test::Bytes to(100);
  MemoryKey* const key = register_host(*pair.receiver, to);
  Request* const receive = *test::post_recv(*pair.receiver, to, key);
  ASSERT_NE(receive, nullptr);
  const Snapshot snapshot = read_until(
      [](const Snapshot& now) { return count(now, kTo, Counter::kStalledMessages) == 1; },
      [&] { EXPECT_FALSE(*receive->test({})); });
  EXPECT_TRUE(connection_of(snapshot, Way::kReceive)->is_stalled);
  EXPECT_TRUE(pair.receiver->deregister_memory(key));
  pair = {};
  // The control thread writes it, a moment after the connection has ended.
  read_until([this](const Snapshot&) {
    return std::ranges::any_of(log_.infos(), [](const std::string& line) {
      return line.starts_with("ztcp-fake1: stragglers: receiving from ");
    });
  });
  EXPECT_THAT(log_.infos(), Contains(AllOf(StartsWith("ztcp-fake1: stalled: receiving from "),
                                           HasSubstr("the peer has not sent its data"))));
}

TEST_F(VerbsPageTest, TellsWhyAConnectionFailed) {
  test::Pair pair = this->pair();
  exchange(pair, 1000, 1);
  test::Bytes from(100);
  test::Bytes to(100);
  MemoryKey* const from_key = register_host(*pair.sender, from);
  MemoryKey* const to_key = register_host(*pair.receiver, to);
  ASSERT_NE(*test::post_recv(*pair.receiver, to, to_key), nullptr);
  host_.devices.fail_next_message(IBV_WC_RETRY_EXC_ERR);
  Request* const send = test::post_until_taken(*pair.sender, from, from_key);
  ASSERT_NE(send, nullptr);
  EXPECT_FALSE(test::finish(*send));
  const Snapshot snapshot = read_until([](const Snapshot& now) {
    const auto* const connection = connection_of(now, Way::kSend);
    return connection != nullptr && connection->state == "failed";
  });
  EXPECT_EQ(count(snapshot, kFrom, Counter::kNoAnswers), 1U);
  EXPECT_EQ(count(snapshot, kFrom, Counter::kConnectionsFailed), 1U);
  EXPECT_EQ(connection_of(snapshot, Way::kSend)->messages_in_flight, 0U);
  EXPECT_TRUE(pair.sender->deregister_memory(from_key));
  EXPECT_TRUE(pair.receiver->deregister_memory(to_key));
  pair = {};
  read_until([](const Snapshot& now) {
    return now.connections.empty() && count(now, kFrom, Counter::kConnectionsFailed) == 1;
  });
}

TEST_F(VerbsPageTest, AClosedConnectionAddsItsTimesToThoseOfItsCommunicator) {
  constexpr std::uint64_t kCommunicator = 0x77;
  auto listener = std::move(*transport_->listen(1, {.communicator = kCommunicator}));
  test::Pair pair;
  pair.sender =
      std::move(*transport_->begin_connect(0, listener->handle(), {.communicator = kCommunicator}));
  while (!*pair.sender->is_ready() || pair.receiver == nullptr)
    if (pair.receiver == nullptr) pair.receiver = std::move(*listener->accept());
  exchange(pair, 10'000, 1);
  exchange(pair, 10'000, 2);
  const Snapshot snapshot = read_until(
      [](const Snapshot& now) { return count(now, kTo, Counter::kReceivedMessages) == 2; });
  EXPECT_EQ(snapshot.connections.at(0).communicator, kCommunicator);
  pair = {};
  const auto times = stats::communicator_times().take(kCommunicator);
  ASSERT_EQ(times.size(), 2U);
  for (const stats::PeerTime& time : times) {
    EXPECT_EQ(time.messages, 2U);
    EXPECT_THAT(time.peer, HasSubstr("127.0.0.1"));
  }
}

TEST_F(VerbsPageTest, TheLinkFollowsThePort) {
  const test::Pair pair = this->pair();
  host_.devices.set_port_state("fake0", 1, IBV_PORT_DOWN);
  read_until([](const Snapshot& now) { return now.devices[0].link == stats::LinkStatus::kDown; });
  host_.devices.set_port_state("fake0", 1, IBV_PORT_ACTIVE);
  read_until([](const Snapshot& now) { return now.devices[0].link == stats::LinkStatus::kUp; });
}

TEST_F(VerbsPageTest, SeveralConnectionsOfADeviceAreSummedUp) {
  test::Pair one = pair();
  test::Pair other = pair();
  exchange(one, 1000, 1);
  exchange(other, 500, 2);
  const Snapshot snapshot = read_until([](const Snapshot& now) {
    return count(now, kFrom, Counter::kSentBytes) == 1500 && lane_of(now, kFrom).connections == 2;
  });
  EXPECT_EQ(snapshot.connections.size(), 4U);
  EXPECT_EQ(snapshot.lanes.size(), 2U);
}

// The sender's devices are fake0 and fake1, the receiver's fake2 and fake3.
class VerbsRailsPageTest : private ProcessPage, public RailsFixture {
 protected:
  VerbsRailsPageTest()
      : ProcessPage({"from", "to"}),
        RailsFixture({merged(nic_on("fake0"), "from"), merged(nic_on("fake1"), "from"),
                      merged(nic_on("fake2"), "to"), merged(nic_on("fake3"), "to")}) {}
  using ProcessPage::read_until;

  template <class Wanted>
  Snapshot carry_until_page(Wanted&& wanted) {
    return read_until(wanted, [this] { turn(); });
  }
  static std::uint64_t sum(const Snapshot& snapshot, std::uint32_t stats::Flow::*member) {
    std::uint64_t out = 0;
    for (const stats::Flow& flow : snapshot.flows) out += flow.*member;
    return out;
  }
};

TEST_F(VerbsRailsPageTest, BothRailsOfAConnectionCarryBytes) {
  carry(20);
  const Snapshot snapshot = carry_until_page([](const Snapshot& now) {
    return now.flows.size() == 4 && std::ranges::all_of(now.flows, [](const stats::Flow& flow) {
             return flow.sent_bytes + flow.received_bytes > 0;
           });
  });
  for (const stats::Flow& flow : snapshot.flows) {
    EXPECT_EQ(flow.state, "up");
    EXPECT_THAT(flow.local, AnyOf("fake0 port 1", "fake1 port 1", "fake2 port 1", "fake3 port 1"));
  }
}

TEST_F(VerbsRailsPageTest, ARailThatFailsIsShownUntilItIsBack) {
  carry(10);
  host_.devices.set_port_state("fake1", 1, IBV_PORT_DOWN);
  Snapshot snapshot = carry_until_page([](const Snapshot& now) {
    return std::ranges::any_of(now.flows, [](const stats::Flow& flow) {
      return flow.local == "fake1 port 1" && flow.state == "down" && flow.failures == 1;
    });
  });
  EXPECT_EQ(count(snapshot, kFrom, Counter::kLostRails), 1U);
  EXPECT_EQ(count(snapshot, kFrom, Counter::kRedials), 0U);
  EXPECT_EQ(snapshot.devices[0].link, stats::LinkStatus::kUp) << "another rail serves";
  host_.devices.set_port_state("fake1", 1, IBV_PORT_ACTIVE);
  snapshot = carry_until_page([](const Snapshot& now) {
    return now.flows.size() == 4 && sum(now, &stats::Flow::recoveries) == 2 &&
           std::ranges::all_of(now.flows,
                               [](const stats::Flow& flow) { return flow.state == "up"; });
  });
  EXPECT_EQ(sum(snapshot, &stats::Flow::failures), 2U) << "each end has lost it once";
  EXPECT_EQ(count(snapshot, kFrom, Counter::kRedials), 1U);
}

TEST_F(VerbsRailsPageTest, ABrokenQueuePairCountsItsCompletionErrors) {
  carry(10);
  host_.devices.fail_next_message(IBV_WC_RETRY_EXC_ERR);
  const Snapshot snapshot = carry_until_page([](const Snapshot& now) {
    return count(now, kFrom, Counter::kLostRails) >= 1 &&
           count(now, kTo, Counter::kFlushedWork) >= 1;
  });
  EXPECT_EQ(count(snapshot, kFrom, Counter::kConnectionsFailed), 0U);
}

}  // namespace
}  // namespace ztcp::verbs
