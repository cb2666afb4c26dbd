// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/connection_page.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/support/polling.h"
#include "tests/unit/stats/page_fixture.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/stats/communicator_times.h"
#include "transport/stats/page_reader.h"
#include "transport/stats/process_page.h"

namespace ztcp::comms {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kPageOpened{std::chrono::seconds(5)};
const Endpoint kPagePeer{IpAddress(Ipv4Address{0x0a000002}), 4711};

// A stream whose state the test sets.
class KnownStream final : public Stream {
 public:
  std::size_t room() const override { return 0; }
  bool write(std::span<const std::byte>, std::span<const Fragment>) override { return false; }
  void finish() override {}
  void close() override {}
  void abort() override {}
  StreamStatistics stream_statistics(TimePoint) const override { return now; }
  StreamStatistics now;
};

class ConnectionPageTest : public testing::Test {
 protected:
  ConnectionPageTest() : page_(folder_.create()) {
    stats::DeviceRecord device{};
    device.carrier = static_cast<std::uint32_t>(stats::Carrier::kKernelSockets);
    device.name.set("ztcp0");
    page_->add_device(device);
    place_ = lane_place(page_, "ztcp0", 0);
    connection_ = ConnectionPage::open(place_, stats::Way::kSend, kPagePeer, 77);
  }
  void refresh(TimePoint now, const ConnectionPage::Values& values, bool has_stream = true) {
    connection_->begin_round();
    if (has_stream) connection_->note_stream(now, 0, stream_);
    connection_->refresh(now, values, log_);
  }
  stats::Snapshot read() {
    auto snapshot = stats::read_page(folder_.path() / page_->file_name());
    EXPECT_TRUE(snapshot);
    return snapshot ? *snapshot : stats::Snapshot{};
  }
  ConnectionPage::Values in_flight(msg::Awaited awaited) {
    ConnectionPage::Values values;
    values.state = "open";
    values.in_flight = 1;
    values.oldest = kPageOpened;
    values.awaited = awaited;
    return values;
  }

  stats::PageFolder folder_;
  std::shared_ptr<stats::Page> page_;
  LanePlace place_;
  KnownStream stream_;
  std::unique_ptr<ConnectionPage> connection_;
  DeferredLog log_;
};

TEST_F(ConnectionPageTest, ListsConnectionAndFlow) {
  stream_.now.rtt = std::chrono::microseconds(40);
  stream_.now.sent_bytes = 1000;
  stream_.now.in_flight_bytes = 100;
  stream_.now.congestion_control = "bbr";
  refresh(kPageOpened + milliseconds(3), in_flight(msg::Awaited::kNetwork));
  const stats::Snapshot snapshot = read();
  ASSERT_EQ(snapshot.connections.size(), 1U);
  const stats::Connection& connection = snapshot.connections[0];
  EXPECT_EQ(connection.communicator, 77U);
  EXPECT_EQ(connection.peer, "10.0.0.2:4711");
  EXPECT_EQ(connection.state, "open");
  EXPECT_EQ(connection.oldest_ns, 3'000'000U);
  EXPECT_EQ(connection.waiting, stats::Waiting::kNetwork);
  ASSERT_EQ(snapshot.flows.size(), 1U);
  EXPECT_EQ(snapshot.flows[0].connection, connection.id);
  EXPECT_EQ(snapshot.flows[0].sent_bytes, 1000U);
  EXPECT_EQ(snapshot.flows[0].congestion_control, "bbr");
  EXPECT_EQ(snapshot.flows[0].rtt_ns, 40'000U);
  EXPECT_GE(snapshot.flows[0].rtt_p50_ns, 40'000U);
}

TEST_F(ConnectionPageTest, TellsThePeersHostOnceItIsKnown) {
  connection_->note_host({});
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections.at(0).peer_host, "");
  connection_->note_host(HostName::of("gpu-02"));
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  const stats::Snapshot snapshot = read();
  EXPECT_EQ(snapshot.connections.at(0).peer_host, "gpu-02");
  EXPECT_EQ(snapshot.latencies.at(0).peer, "10.0.0.2");
  EXPECT_EQ(snapshot.latencies.at(0).host, "gpu-02");
  const auto second = ConnectionPage::open(place_, stats::Way::kSend, kPagePeer, 77);
  EXPECT_EQ(read().latencies.size(), 1U) << "the named entry is found again";
}

TEST_F(ConnectionPageTest, MessagesCountForTheirCommunicatorOnceClosed) {
  connection_->note_host(HostName::of("gpu-02"));
  connection_->add_latency(64, milliseconds(3));
  connection_->add_latency(64, milliseconds(4));
  connection_->note_closed();
  const auto times = stats::communicator_times().take(77);
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].peer, "gpu-02 (10.0.0.2)");
  EXPECT_EQ(times[0].messages, 2U);
  EXPECT_EQ(times[0].total_ns, 7'000'000U);
}

TEST_F(ConnectionPageTest, QuantilesOfRoundTripsAreThoseOfTheStreamsSamples) {
  Histogram rtts;
  for (int i = 0; i < 98; ++i) rtts.add(20'000);
  for (int i = 0; i < 2; ++i) rtts.add(5'000'000);
  stream_.now.rtts = &rtts;
  stream_.now.rtt = milliseconds(1);
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  const stats::Flow flow = read().flows.at(0);
  EXPECT_EQ(flow.rtt_p50_ns, quantile_ns(rtts.counts(), 0.5));
  EXPECT_LT(flow.rtt_p50_ns, 30'000U);
  EXPECT_GE(flow.rtt_p99_ns, 5'000'000U);
}

TEST_F(ConnectionPageTest, ProgressIsTheTimeSinceBytesMoved) {
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  stream_.now.sent_bytes = 1;
  refresh(kPageOpened + milliseconds(500), in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections[0].progress_ns, 0U);
  refresh(kPageOpened + milliseconds(1500), in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections[0].progress_ns, 1'000'000'000U);
}

TEST_F(ConnectionPageTest, ShutWindowIsTheReasonToWait) {
  stream_.now.is_window_shut = true;
  stream_.now.unsent_bytes = 10;
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kPeerWindow);
}

// The kernel of a stopped process acknowledges bytes until its buffers are full.
TEST_F(ConnectionPageTest, ASendWhoseBytesAreAllAcknowledgedWaitsForThePeersProcess) {
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kPeerWindow);
  stream_.now.in_flight_bytes = 1448;
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kNetwork);
  stream_.now.in_flight_bytes = 0;
  stream_.now.unsent_bytes = 1;
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kNetwork);
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork), /*has_stream=*/false);
  EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kNetwork) << "all flows are lost";
}

// The network was cut after the peer's last acknowledgement.
TEST_F(ConnectionPageTest, ASendToASilentPeerWaitsForTheNetwork) {
  for (const msg::Awaited awaited : {msg::Awaited::kNetwork, msg::Awaited::kPeerReceive}) {
    ConnectionPage::Values values = in_flight(awaited);
    values.trouble = msg::PeerTrouble::kStandsStill;
    refresh(kPageOpened, values);
    EXPECT_NE(read().connections[0].waiting, stats::Waiting::kNetwork);
    values.trouble = msg::PeerTrouble::kSilent;
    refresh(kPageOpened, values);
    EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kNetwork);
  }
}

TEST_F(ConnectionPageTest, AReceiveOfAMessageThatHasBegunWaitsForTheNetwork) {
  connection_ = ConnectionPage::open(place_, stats::Way::kReceive, kPagePeer, 77);
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kNetwork);
}

TEST_F(ConnectionPageTest, TellsWaitsForCreditAndForThePeersWindow) {
  stream_.now.zero_windows = 2;
  stream_.now.zero_window_time = milliseconds(30);
  msg::CreditWait wait;
  wait.set(kPageOpened, true);
  connection_->note_credit(kPageOpened + milliseconds(4), wait);
  refresh(kPageOpened, in_flight(msg::Awaited::kPeerReceive));
  const stats::Snapshot snapshot = read();
  EXPECT_EQ(snapshot.connections.at(0).credit_stalls, 1U);
  EXPECT_EQ(snapshot.connections.at(0).credit_stall_ns, 4'000'000U);
  EXPECT_EQ(snapshot.flows.at(0).zero_windows, 2U);
  EXPECT_EQ(snapshot.flows.at(0).zero_window_ns, 30'000'000U);
}

TEST_F(ConnectionPageTest, TheLaneKeepsTheWaitsOfEndedFlowsAndConnections) {
  stream_.now.zero_windows = 2;
  stream_.now.zero_window_time = milliseconds(30);
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(place_.waits->zero_windows, 2U);
  EXPECT_EQ(place_.waits->zero_window_ns, 30'000'000U);
  stream_.now = {};  // A flow that was dialled again.
  stream_.now.local = {IpAddress(Ipv4Address{0x0a000001}), 4712};
  stream_.now.zero_window_time = milliseconds(5);
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  EXPECT_EQ(place_.waits->zero_window_ns, 35'000'000U);
  msg::CreditWait wait;
  wait.set(kPageOpened, true);
  wait.set(kPageOpened + milliseconds(1), false);
  for (int i = 0; i < 2; ++i) connection_->note_credit(kPageOpened + milliseconds(9), wait);
  connection_.reset();
  EXPECT_EQ(place_.waits->credit_stalls, 1U);
  EXPECT_EQ(place_.waits->credit_stall_ns, 1'000'000U);
}

TEST_F(ConnectionPageTest, AMessageWithoutProgressIsMarkedAndLoggedAsStalled) {
  refresh(kPageOpened, in_flight(msg::Awaited::kPeerReceive));
  EXPECT_TRUE(log_.empty());
  refresh(kPageOpened + std::chrono::seconds(10), in_flight(msg::Awaited::kPeerReceive));
  const auto lines = log_.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text,
            "ztcp0: stalled: sending to 10.0.0.2:4711 (communicator 0x4d) has made no progress for "
            "10.0 s: the peer has posted no receive");
  EXPECT_TRUE(read().connections[0].is_stalled);
  EXPECT_EQ(read().connections[0].stalled_messages, 1U);
  connection_->end(kPageOpened + std::chrono::seconds(11), log_);
  EXPECT_EQ(log_.take().size(), 1U);
}

TEST_F(ConnectionPageTest, AMessageFarBeyondTheUsualLatencyIsSlow) {
  for (int i = 0; i < 200; ++i) connection_->add_latency(64, std::chrono::microseconds(50));
  for (int i = 0; i < 3; ++i) {
    stream_.now.sent_bytes += 1;  // It moves.
    refresh(kPageOpened + milliseconds(150 * (i + 1)), in_flight(msg::Awaited::kNetwork));
  }
  const auto lines = log_.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].text.starts_with("ztcp0: slow: sending to 10.0.0.2:4711")) << lines[0].text;
  EXPECT_TRUE(read().connections[0].is_slow);
}

TEST_F(ConnectionPageTest, RailsAreListedAsFlows) {
  connection_->begin_round();
  connection_->note_rail(1, {.state = "down",
                             .local = "mlx5_1 port 1",
                             .remote = "mlx5_3 fe80::3",
                             .sent_bytes = 700,
                             .in_flight_bytes = std::uint64_t{5} << 32,
                             .failures = 2,
                             .recoveries = 1});
  connection_->refresh(kPageOpened, in_flight(msg::Awaited::kNetwork), log_);
  const stats::Snapshot snapshot = read();
  ASSERT_EQ(snapshot.flows.size(), 1U);
  const stats::Flow& flow = snapshot.flows[0];
  EXPECT_EQ(flow.number, 1U);
  EXPECT_EQ(flow.state, "down");
  EXPECT_EQ(flow.local, "mlx5_1 port 1");
  EXPECT_EQ(flow.remote, "mlx5_3 fe80::3");
  EXPECT_EQ(flow.sent_bytes, 700U);
  EXPECT_EQ(flow.in_flight_bytes, UINT32_MAX);
  EXPECT_EQ(flow.failures, 2U);
  EXPECT_EQ(flow.recoveries, 1U);
}

TEST_F(ConnectionPageTest, AMessageForWhoseEndNoThreadAsksWaitsForThisHost) {
  auto values = in_flight(msg::Awaited::kNetwork);
  values.is_unpolled = true;
  refresh(kPageOpened, values);
  EXPECT_EQ(read().connections[0].waiting, stats::Waiting::kThisHost);
}

TEST_F(ConnectionPageTest, EndedFlowsAreNoLongerListed) {
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork));
  refresh(kPageOpened, in_flight(msg::Awaited::kNetwork), /*has_stream=*/false);
  EXPECT_TRUE(read().flows.empty());
  connection_.reset();
  EXPECT_TRUE(read().connections.empty());
}

TEST_F(ConnectionPageTest, CountsOneInSixteenOfSmallMessagesAndAllLargeOnes) {
  EXPECT_TRUE(ConnectionPage::is_counted(4096, 16));
  EXPECT_FALSE(ConnectionPage::is_counted(4096, 17));
  EXPECT_TRUE(ConnectionPage::is_counted(4097, 17));
  connection_->add_latency(8, milliseconds(1));
  connection_->add_latency(8, milliseconds(-1));
  EXPECT_EQ(stats::total(read().latencies[0].by_class[0]), 2U);
}

TEST(ConnectionPage, IsNullWithoutAPage) {
  EXPECT_EQ(ConnectionPage::open({}, stats::Way::kSend, kPagePeer, 0), nullptr);
}

// Over userspace TCP in memory.
TEST(CommsOnThePage, TellCreditStallsAndThePeersHost) {
  stats::PageFolder folder;
  const auto page = folder.create();
  for (const char* name : {"mem0", "mem1"}) {
    stats::DeviceRecord device{};
    device.carrier = static_cast<std::uint32_t>(stats::Carrier::kUserspaceTcp);
    device.name.set(name);
    page->add_device(device);
  }
  stats::set_process_page(page);
  {
    ustack::TwoHosts hosts;
    test::Pair pair = test::connect(hosts[0], hosts[1]);
    const test::Bytes sent = test::pattern(1U << 20U, 1);  // More than goes without a receive.
    Request* const request = test::post_until_taken(*pair.sender, sent, nullptr);
    ASSERT_NE(request, nullptr);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    stats::Connection sender;
    while (sender.credit_stalls == 0 && std::chrono::steady_clock::now() < deadline) {
      std::size_t size = 0;
      ASSERT_TRUE(request->test({&size, 1}));
      const auto snapshot = stats::read_page(folder.path() / page->file_name());
      ASSERT_TRUE(snapshot);
      for (const stats::Connection& one : snapshot->connections)
        if (one.way == stats::Way::kSend) sender = one;
    }
    EXPECT_EQ(sender.credit_stalls, 1U);
    EXPECT_EQ(sender.waiting, stats::Waiting::kPeerReceive);
    EXPECT_EQ(sender.peer_host, own_host_name().view());
  }
  stats::set_process_page(nullptr);
}

}  // namespace
}  // namespace ztcp::comms
