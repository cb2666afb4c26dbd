// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whole connections over devices in memory, joined over loopback by the real control threads.
#include "transport/verbs/verbs_transport.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "tests/support/transfers.h"
#include "tests/unit/verbs/connections.h"

namespace ztcp::verbs {
namespace {

using test::Bytes;
using test::Pair;
using testing::HasSubstr;
using testing::IsEmpty;

class VerbsTransportTest : public Connections {
 protected:
  VerbsTransportTest() : Connections({roce_device("fake0", 1), roce_device("fake1", 2)}) {}
};

// Counts whole connections, as tests/sim/verbs_work_test.cc does for sessions alone: no more than
// NCCL's own net_ib needs.
TEST_F(VerbsTransportTest, AMessageIsOneWorkOneDoorbellAndOneCompletionOnEitherSide) {
  Pair both = pair();
  for (const auto& [size, messages] : {std::pair<std::size_t, int>{8, 512}, {1U << 20U, 64}}) {
    const test::FakeCounts sent = host_.devices.counts("fake0");
    const test::FakeCounts received = host_.devices.counts("fake1");
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(messages); ++i)
      exchange(both, size, i);
    const test::FakeCounts sender = host_.devices.counts("fake0");
    const test::FakeCounts receiver = host_.devices.counts("fake1");
    EXPECT_EQ(sender.works - sent.works, messages) << size;
    EXPECT_EQ(sender.doorbells - sent.doorbells, messages);
    EXPECT_EQ(sender.completions - sent.completions, messages);
    EXPECT_EQ(receiver.works - received.works, messages);
    EXPECT_EQ(receiver.doorbells - received.doorbells, messages);
    EXPECT_LE(receiver.completions - received.completions, messages + messages / 256 + 1);
    EXPECT_LE(receiver.receives - received.receives, messages + 64);
    EXPECT_LE(receiver.receive_doorbells - received.receive_doorbells, messages / 64 + 1);
  }
}

// As NCCL's own: a plain write, which may go any way, and a message behind it.
TEST_F(VerbsTransportTest, PiecesAboveTheThresholdAreToldOfApart) {
  const auto counts = [&] {
    return std::vector<int>{host_.devices.carried_out(IBV_WR_RDMA_WRITE_WITH_IMM),
                            host_.devices.carried_out(IBV_WR_SEND)};
  };
  host_.variables.adaptive_routing = 1;
  host_.variables.adaptive_threshold = 4096;
  host_.variables.queue_pairs = 2;
  host_.variables.is_split = true;
  const auto other = host_.start();
  Pair both = test::connect(*other, *other, 1);
  exchange(both, 4096, 1);
  EXPECT_EQ(counts(), (std::vector<int>{1, 0}));
  exchange(both, 4097, 2);
  EXPECT_EQ(counts(), (std::vector<int>{1, 1}));
  for (std::uint64_t round = 0; round < 300; ++round) exchange(both, round % 3 * 3000, round);
  exchange(both, 1 << 20, 3);
  EXPECT_EQ(counts(), (std::vector<int>{201, 103})) << "two for what is cut over two queue pairs";

  // The sender's to say.
  Pair plain = test::connect(*other, *transport_, 1);
  exchange(plain, 5000, 4);
  EXPECT_EQ(counts(), (std::vector<int>{201, 104}));
  Pair asked = test::connect(*transport_, *other, 1);
  exchange(asked, 5000, 5);
  EXPECT_EQ(counts(), (std::vector<int>{202, 104}));
}

TEST_F(VerbsTransportTest, ANicThatTakesNothingInlineTellsOfNothingApart) {
  transport_.reset();
  test::FakeDeviceSpec spec = roce_device("fake0", 1);
  spec.max_inline = 4;
  FakeHost host({spec, roce_device("fake1", 2)}, 1);
  host.variables.adaptive_routing = 1;
  {
    const auto other = host.start();
    Pair both = test::connect(*other, *other, 1);
    exchange(both, 10'000, 1);
    EXPECT_EQ(host.devices.carried_out(IBV_WR_SEND), 0);
  }
  EXPECT_THAT(host.devices.misuse(), IsEmpty());
}

TEST_F(VerbsTransportTest, AConnectionIsReadyThoughNobodyAccepts) {
  auto listener = std::move(*transport_->listen(1, {}));
  auto sender = std::move(*transport_->begin_connect(0, listener->handle(), {}));
  while (true) {
    const auto ready = sender->is_ready();
    ASSERT_TRUE(ready);
    if (*ready) break;
  }
  auto receiver = listener->accept();
  while (receiver && *receiver == nullptr) receiver = listener->accept();
  ASSERT_TRUE(receiver);
  EXPECT_THAT(sender->describe_peer(), testing::MatchesRegex("127.0.0.1:[0-9]+ on ztcp-fake0"));
}

TEST_F(VerbsTransportTest, AMergedDeviceCarriesOverAllOfItsRails) {
  const auto merged = transport_->merge(std::array{0, 1});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->properties.name, "ztcp-fake0+ztcp-fake1");
  EXPECT_EQ(merged->properties.speed_mbps, 200'000U);
  EXPECT_EQ(transport_->merge(std::array{0, 1})->number, merged->number) << "the same again";
  EXPECT_EQ(transport_->devices().size(), 2U);
  EXPECT_THAT(transport_->describe_device(merged->number),
              AllOf(HasSubstr("over 2 rails: fake0 port 1"), HasSubstr("; fake1 port 1")));
  EXPECT_FALSE(transport_->merge(std::array{0, 0}));
  EXPECT_FALSE(transport_->merge(std::array{0, merged->number}));
  EXPECT_FALSE(transport_->merge(std::array{0, 9}));

  Pair both = test::connect(*transport_, *transport_, merged->number, merged->number);
  EXPECT_EQ(host_.devices.live("qp"), 4) << "none for flushes where there is no GPU memory";
  for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 64, 4096, 1 << 20})
    exchange(both, size, size + 1);
  // A merged device and one alone: over the rail that both have.
  Pair odd = test::connect(*transport_, *transport_, 1, merged->number);
  exchange(odd, 300'000, 4);
  EXPECT_EQ(host_.devices.live("qp"), 6) << "the sender's second is given back";
}

TEST_F(VerbsTransportTest, MergedNicsAreShownAsOneDevice) {
  host_.fabric.nics[0].merge = host_.fabric.nics[1].merge = "ib0";
  host_.variables.queue_pairs = 8;
  const auto other = host_.start();
  ASSERT_EQ(other->devices().size(), 1U);
  EXPECT_EQ(other->devices()[0].name, "ib0");
  Pair both = test::connect(*other, *other, 0);
  EXPECT_EQ(host_.devices.live("qp"), 16) << "four on each rail, at either end";
  exchange(both, 1 << 20, 1);
  EXPECT_FALSE(other->merge(std::array{0, 0}));
}

// Queue pairs are more ways through the network, not more work for a message.
TEST_F(VerbsTransportTest, QueuePairsTakeLargeMessagesInTurnUnlessTheyAreToBeSplit) {
  host_.variables.queue_pairs = 4;
  const auto works_for = [&] {
    const auto other = host_.start();
    Pair both = test::connect(*other, *other, 1);
    exchange(both, 1 << 20, 1);
    const int before = host_.devices.counts("fake0").works;
    for (std::uint64_t i = 0; i < 8; ++i) exchange(both, 1 << 20, i);
    return host_.devices.counts("fake0").works - before;
  };
  EXPECT_EQ(works_for(), 8);
  host_.variables.is_split = true;
  EXPECT_EQ(works_for(), 32);
}

// Options of one vendor beyond the standard: each end uses those that both support.
class Ece : public Connections {
 protected:
  static test::FakeDeviceSpec device(const char* name, unsigned host, std::uint32_t vendor,
                                     std::uint32_t options) {
    test::FakeDeviceSpec spec = roce_device(name, host);
    spec.ece_vendor = vendor;
    spec.ece_options = options;
    return spec;
  }
  Ece() : Ece(0x15b3) {}
  explicit Ece(std::uint32_t vendor)
      : Connections({device("fake0", 1, 0x15b3, 0x30), device("fake1", 2, vendor, 0x70)}) {}
};
class EceOfTwoVendors : public Ece {
 protected:
  EceOfTwoVendors() : Ece(0x14e4) {}
};

TEST_F(Ece, BothEndsGoByWhatBothCan) {
  Pair both = pair();
  exchange(both, 1000, 1);
  EXPECT_THAT(host_.devices.ece_of("fake0"), testing::ElementsAre(0x30U));
  EXPECT_THAT(host_.devices.ece_of("fake1"), testing::Contains(0x30U));
}

TEST_F(Ece, IsLeftAloneWhereEitherEndForbidsIt) {
  host_.variables.has_ece = false;
  const auto other = host_.start();
  {
    Pair both = test::connect(*other, *transport_, 1);
    exchange(both, 1000, 1);
    EXPECT_THAT(host_.devices.ece_of("fake0"), testing::ElementsAre(std::nullopt));
    EXPECT_THAT(host_.devices.ece_of("fake1"), testing::Each(testing::Eq(std::nullopt)));
  }
  Pair both = test::connect(*transport_, *other, 1);
  exchange(both, 1000, 2);
  EXPECT_THAT(host_.devices.ece_of("fake0"), testing::Each(testing::Eq(std::nullopt)));
  EXPECT_THAT(host_.devices.ece_of("fake1"), testing::Each(testing::Eq(std::nullopt)));
}

TEST_F(EceOfTwoVendors, IsNone) {
  Pair both = pair();
  exchange(both, 1000, 1);
  EXPECT_THAT(host_.devices.ece_of("fake0"), testing::ElementsAre(std::nullopt));
  EXPECT_THAT(host_.devices.ece_of("fake1"), testing::Each(testing::Eq(std::nullopt)));
}

TEST_F(VerbsTransportTest, NicsAreNotMergedWhereNcclWasToldSo) {
  host_.variables.merges = false;
  EXPECT_FALSE(host_.start()->merge(std::array{0, 1}));
}

// --- Ends ----------------------------------------------------------------------------------------

TEST_F(VerbsTransportTest, AFailedCompletionNamesPeerDevicePortQueuePairAndStatus) {
  Pair both = pair();
  Bytes bytes(100);
  MemoryKey* const from_key = register_host(*both.sender, bytes);
  MemoryKey* const to_key = register_host(*both.receiver, bytes);
  const auto receive = test::post_recv(*both.receiver, bytes, to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  host_.devices.fail_next_message(IBV_WC_RETRY_EXC_ERR);
  Request* const send = test::post_until_taken(*both.sender, bytes, from_key);
  ASSERT_NE(send, nullptr);
  const auto sent = test::finish(*send);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::kTimedOut);
  EXPECT_THAT(log_.warned(), HasSubstr("sending to 127.0.0.1:"));
  EXPECT_THAT(log_.warned(), HasSubstr("over fake0 port 1 failed: the peer stopped answering "
                                       "(IBV_WC_RETRY_EXC_ERR)"));
  EXPECT_THAT(log_.warned(), HasSubstr("of fake1, GID 10.0.0.2: the peer's NIC did not answer "
                                       "(status 12, vendor error 0x81)"));
  EXPECT_THAT(log_.warned(), HasSubstr("0 messages (0 bytes) done, 1 in flight; "));
  EXPECT_THAT(log_.warned(), HasSubstr("raise ack_timeout, or NCCL_IB_TIMEOUT"));
  test::expect_failure_sentence(log_);
  const auto received = test::finish(**receive);
  ASSERT_FALSE(received) << "the receiver hears of it";
  EXPECT_EQ(received.error().code, Errc::kTimedOut);
}

// Its descriptor tells of that for ever, which must not keep the thread busy.
TEST_F(VerbsTransportTest, ADeviceThatIsTakenOutEndsItsConnectionsAndIsAskedNoMore) {
  static std::atomic<int> asked;
  asked = 0;
  // Never read, so that the descriptor stays readable.
  Api api = *host_.devices.api();
  api.get_async_event = [](ibv_context*, ibv_async_event*) {
    ++asked;
    errno = EIO;
    return -1;
  };
  transport_.reset();
  std::vector<Device> devices = host_.list();
  devices[1].opened->api = &api;
  const std::shared_ptr<OpenDevice> gone = devices[1].opened;
  transport_ = std::move(*create(host_.fabric, std::move(devices)));
  {
    Pair both = pair();
    Pair other = test::connect(*transport_, *transport_, 0);
    host_.devices.raise("fake1", IBV_EVENT_DEVICE_FATAL);
    while (log_.warned().find("fake1: is gone (Input/output error)") == std::string::npos)
      std::this_thread::yield();
    exchange(other, 100, 1);
    const Pair later = test::connect(*transport_, *transport_, 0);
    EXPECT_EQ(asked, 1);
    Bytes to(100);
    const auto receive = test::post_recv(*both.receiver, to, register_host(*both.receiver, to));
    ASSERT_TRUE(receive && *receive != nullptr);
    const auto received = test::finish(**receive);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().code, Errc::kNoDevice);
  }
  transport_.reset();
  gone->api = host_.devices.api();
}

TEST_F(VerbsTransportTest, APortThatGoesDownEndsWhatIsUnderWayInTime) {
  Pair both = pair();
  Bytes bytes(100);
  MemoryKey* const from_key = register_host(*both.sender, bytes);
  MemoryKey* const to_key = register_host(*both.receiver, bytes);
  exchange(both, 100, 1);
  const auto receive = test::post_recv(*both.receiver, bytes, to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  // The slot is there, and the port goes away under the answer.
  for (int i = 0; i < 1000; ++i) (void)(*receive)->test({});
  host_.devices.set_port_state("fake0", 1, IBV_PORT_DOWN);
  while (log_.warned().empty()) std::this_thread::yield();
  Request* const send = test::post_until_taken(*both.sender, bytes, from_key);
  ASSERT_NE(send, nullptr);
  const auto sent = test::finish(*send);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::kTimedOut);
  EXPECT_THAT(log_.warned(), HasSubstr("port 1 of fake0 is down"));
}

// RoCE without flow control loses packets. The sender's NIC would send again, and find nobody.
TEST_F(VerbsTransportTest, TheLastAcknowledgementMayBeLostWhenTheReceiverClosesInPeace) {
  Pair both = pair();
  Bytes from = test::pattern(1000, 1);
  Bytes to(1000);
  MemoryKey* const from_key = register_host(*both.sender, from);
  MemoryKey* const to_key = register_host(*both.receiver, to);
  const auto receive = test::post_recv(*both.receiver, to, to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  Request* const send = test::post_until_taken(*both.sender, from, from_key);
  ASSERT_NE(send, nullptr);
  host_.devices.lose_acknowledgements(true);
  ASSERT_TRUE(test::finish(**receive));
  EXPECT_TRUE(both.receiver->deregister_memory(to_key));
  both.receiver.reset();
  EXPECT_TRUE(test::finish(*send));
  EXPECT_EQ(log_.warned(), "");
  EXPECT_TRUE(both.sender->deregister_memory(from_key));
}

// Each takes 100 ms, and all together twice as long as a connection may take.
TEST_F(VerbsTransportTest, ManyPeersAtOnceAreServedThoughTheNicIsSlow) {
  static constexpr std::size_t kPeers = 40;
  static ibv_qp* (*real)(ibv_pd*, ibv_qp_init_attr*);
  Api slow = *host_.devices.api();
  real = slow.create_qp;
  slow.create_qp = [](ibv_pd* pd, ibv_qp_init_attr* wanted) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return real(pd, wanted);
  };
  transport_.reset();
  host_.fabric.tcp.connect_timeout_ms = 2000;
  std::vector<Device> devices = host_.list();
  devices[1].opened->api = &slow;
  const std::shared_ptr<OpenDevice> opened = devices[1].opened;
  transport_ = std::move(*create(host_.fabric, std::move(devices)));
  {
    std::vector<std::unique_ptr<Listener>> listeners;
    std::vector<SendCommPtr> senders;
    for (std::size_t i = 0; i < kPeers; ++i) {
      listeners.push_back(std::move(*transport_->listen(1, {})));
      senders.push_back(std::move(*transport_->begin_connect(0, listeners.back()->handle(), {})));
    }
    std::size_t ready = 0;
    while (ready < kPeers) {
      ready = 0;
      for (const SendCommPtr& sender : senders) {
        const auto is_ready = sender->is_ready();
        ASSERT_TRUE(is_ready) << is_ready.error().where << log_.warned();
        ready += *is_ready ? 1 : 0;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  transport_.reset();
  opened->api = host_.devices.api();
}

TEST_F(VerbsTransportTest, WithAnotherClusterKeyNobodyJoins) {
  const std::string key(64, 'a');
  host_.fabric.messages.cluster_key = key;
  const auto other = host_.start();
  ASSERT_NE(other, nullptr);
  auto listener = std::move(*transport_->listen(1, {}));
  auto sender = std::move(*other->begin_connect(0, listener->handle(), {}));
  Result<bool> ready = false;
  while (ready && !*ready) ready = sender->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kProtocol);
  EXPECT_THAT(log_.warned(), HasSubstr("another cluster_key"));
  const auto accepted = listener->accept();
  ASSERT_TRUE(accepted);
  EXPECT_EQ(*accepted, nullptr);
}

TEST_F(VerbsTransportTest, AListenerThatIsGoneRefuses) {
  auto listener = std::move(*transport_->listen(1, {}));
  const PeerHandle handle = listener->handle();
  listener.reset();
  auto sender = std::move(*transport_->begin_connect(0, handle, {}));
  Result<bool> ready = false;
  while (ready && !*ready) ready = sender->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kRefused);
}

TEST_F(VerbsTransportTest, ADeviceWithAFaultRefusesByName) {
  host_.fabric.nics[0].device = "mlx5_9";
  const auto other = host_.start();
  EXPECT_THAT(other->describe_device(0),
              HasSubstr("refuses all connections: no RDMA device mlx5_9 is here; this host has "
                        "fake0, fake1"));
  EXPECT_FALSE(other->listen(0, {}));
  EXPECT_TRUE(other->listen(1, {}));
}

}  // namespace
}  // namespace ztcp::verbs
